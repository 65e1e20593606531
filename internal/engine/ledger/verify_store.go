package ledger

import (
	"maps"
	"slices"
	"strconv"
)

// committed compares each row, column by column, with the digest that its last
// event carries.
func (a *audit) committed([]Head) error {
	for _, table := range slices.Sorted(maps.Keys(rowKeys)) {
		err := a.raw(table, func(row map[string]any) {
			name := rowName(table, row)
			digest, err := rowDigest(table, row)
			told, ok := a.told[name]
			delete(a.told, name)
			switch {
			case !ok:
				a.problem("row %s has no event that tells of it", name)
			case err != nil || digest != told:
				a.problem("row %s is not what its last event says", name)
			}
		})
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.told)) {
		a.problem("row %s is in an event and not in the ledger", name)
	}
	return nil
}

// raw reads all columns of all rows as the database has them; from is a table
// and what may follow it in a SELECT.
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

// itself checks what the ledger says of itself: its schema, and who may write.
func (a *audit) itself([]Head) error {
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
			a.problem("migration %d is not the one this program knows", version)
		}
	})
	if err != nil {
		return err
	}
	for _, version := range slices.Sorted(maps.Keys(missing)) {
		a.problem("migration %d is missing", version)
	}
	if last > int64(len(steps)) { // what it means is for a newer program to say
		return nil
	}
	if err := a.schema(); err != nil {
		return err
	}
	want := map[string]any{"ledger_id": a.id, "min_writer_version": strconv.Itoa(writerVersion), "migrating": ""}
	err = a.raw("meta", func(row map[string]any) {
		key, _ := row["key"].(string)
		if v, ok := want[key]; !ok || v != row["value"] {
			a.problem("what the ledger says of itself under %q is not as it was made", key)
		}
		delete(want, key)
	})
	for _, key := range slices.Sorted(maps.Keys(want)) {
		a.problem("the ledger does not say its %s", key)
	}
	return err
}
