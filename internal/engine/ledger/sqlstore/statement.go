package sqlstore

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// exec runs one statement of the step and returns the number of rows changed.
func (t *tx) exec(step, query string, args ...any) (int64, error) {
	if err := failpoint.Hit(t.ctx, step); err != nil {
		return 0, fault.New(extensions.KindInternal, "", err)
	}
	for _, a := range args {
		if v, ok := a.(string); ok && (strings.ContainsRune(v, 0) || !utf8.ValidString(v)) {
			return 0, fault.Errorf(extensions.KindInvalid, "text with a NUL byte or invalid UTF-8 cannot be recorded")
		}
	}
	res, err := t.sql.ExecContext(t.ctx, t.dialect.rebind(query), args...)
	if err != nil {
		if t.dialect.unique(err) {
			t.clashed = t.dialect.concurrent
			return 0, err // the caller knows what it means
		}
		return 0, t.dialect.classify(err, "writing to "+t.url)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, t.dialect.classify(err, "writing to "+t.url)
	}
	return n, nil
}

func (t *tx) insert(step, table string, fs []field) error {
	vs, err := values(fs)
	if err != nil {
		return fault.New(extensions.KindInvalid, "", err)
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(fs)), ", ")
	if _, err = t.exec(step, "INSERT INTO "+table+" ("+names(fs)+") VALUES ("+marks+")", vs...); err != nil {
		return err
	}
	return t.written(table, fs, vs)
}

// insertOnce inserts a row unless it already exists.
func (t *tx) insertOnce(step, table string, fs []field) error {
	vs, err := values(fs)
	if err != nil {
		return fault.New(extensions.KindInvalid, "", err)
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(fs)), ", ")
	n, err := t.exec(step, "INSERT INTO "+table+" ("+names(fs)+") VALUES ("+marks+") ON CONFLICT DO NOTHING", vs...)
	if err != nil || n == 0 {
		return err
	}
	return t.written(table, fs, vs)
}

// update writes all fields of the one row that where selects. A row that has gone is a defect, since the
// transaction has read it.
func (t *tx) update(step, table string, fs []field, where string, args ...any) error {
	vs, err := values(fs)
	if err != nil {
		return fault.New(extensions.KindInvalid, "", err)
	}
	set := make([]string, len(fs))
	for i, f := range fs {
		set[i] = f.name + " = ?"
	}
	n, err := t.exec(step, "UPDATE "+table+" SET "+strings.Join(set, ", ")+" WHERE "+where, slices.Concat(vs, args)...)
	if err == nil && n != 1 {
		err = fault.Errorf(extensions.KindInternal, "%s: changed %d rows instead of one in %s", step, n, t.url)
	}
	if err != nil {
		return err
	}
	return t.written(table, fs, vs)
}

// written records a row as it is after a statement. The next event of the transaction carries its digest,
// so whoever alters the row must alter the chain too.
func (t *tx) written(table string, fs []field, vs []any) error {
	if _, ok := chain.RowKeys[table]; !ok {
		return nil
	}
	row := make(map[string]any, len(fs))
	for i, f := range fs {
		row[f.name] = vs[i]
	}
	sum, err := chain.RowDigest(table, row)
	if err != nil {
		return err
	}
	if t.rows == nil {
		t.rows = map[string]string{}
	}
	t.rows[chain.RowName(table, row)] = sum
	return nil
}

// removed records that the row is gone.
func (t *tx) removed(table string, row map[string]any) {
	if t.rows == nil {
		t.rows = map[string]string{}
	}
	t.rows[chain.RowName(table, row)] = ""
}
