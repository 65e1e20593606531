package sqlstore

import (
	"maps"
	"slices"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
)

// committed compares each row, column by column, with the digest in its last event.
func (a *audit) committed([]chain.Head) error {
	for _, table := range slices.Sorted(maps.Keys(chain.RowKeys)) {
		err := a.raw(table, func(row map[string]any) {
			name := chain.RowName(table, row)
			digest, err := chain.RowDigest(table, row)
			told, ok := a.Told[name]
			delete(a.Told, name)
			switch {
			case !ok:
				a.Problem("row %s has no event", name)
			case err != nil || digest != told:
				a.Problem("row %s differs from its last event", name)
			}
		})
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Told)) {
		a.Problem("row %s is in an event but not in the ledger", name)
	}
	return nil
}

// raw reads all columns of all rows as stored; from is a table and anything that may follow it in a
// SELECT.
func (a *audit) raw(from string, row func(map[string]any)) error {
	rows, err := a.q.QueryContext(a.ctx, "SELECT * FROM "+from)
	if err != nil {
		return a.dialect.classify(err, "reading "+a.url)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return a.dialect.classify(err, "reading "+a.url)
	}
	for rows.Next() {
		cells, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			at[i] = &cells[i]
		}
		if err := rows.Scan(at...); err != nil {
			return a.dialect.classify(err, "reading "+a.url)
		}
		m := make(map[string]any, len(columns))
		for i, c := range columns {
			m[c] = cells[i]
		}
		row(m)
	}
	if err := rows.Err(); err != nil {
		return a.dialect.classify(err, "reading "+a.url)
	}
	return nil
}

// itself checks the ledger's own metadata: its schema, and who may write.
func (a *audit) itself([]chain.Head) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	last := int64(len(steps))
	missing := map[int64]migration{}
	for _, m := range steps {
		missing[m.version] = m
	}
	err = a.raw("migrations ORDER BY version", func(row map[string]any) {
		version, _ := row["version"].(int64)
		m, ok := missing[version]
		delete(missing, version)
		switch {
		case version == last+1: // of a newer program; they come in order
			last++
		case !ok || row["name"] != m.name || row["sha256"] != m.sha256:
			a.Problem("migration %d differs from this release's", version)
		}
	})
	if err != nil {
		return err
	}
	for _, version := range slices.Sorted(maps.Keys(missing)) {
		a.Problem("migration %d is missing", version)
	}
	if last > int64(len(steps)) { // only a newer program knows what it means
		return nil
	}
	if err := a.schema(); err != nil {
		return err
	}
	want := map[string]any{"ledger_id": a.id, "min_writer_version": strconv.Itoa(writerVersion), "migrating": ""}
	err = a.raw("meta", func(row map[string]any) {
		key, _ := row["key"].(string)
		if v, ok := want[key]; !ok || v != row["value"] {
			a.Problem("the ledger's meta value %q differs from its original", key)
		}
		delete(want, key)
	})
	for _, key := range slices.Sorted(maps.Keys(want)) {
		a.Problem("the ledger has no meta value %q", key)
	}
	return err
}
