package ledger

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// where collects conditions and their arguments.
type where struct {
	parts []string
	args  []any
}

func (w *where) and(cond string, args ...any) {
	w.parts = append(w.parts, cond)
	w.args = append(w.args, args...)
}

func (w *where) equal(column, v string) {
	if v != "" {
		w.and(column+" = ?", v)
	}
}

// account selects org/workspace, or all of an org.
func (w *where) account(account string) {
	if account == "" || strings.Contains(account, "/") {
		w.equal("account", account)
		return
	}
	below := account + "/"
	w.and("substr(account, 1, ?) = ?", len([]rune(below)), below)
}

func oneOf[T ~string](w *where, column string, vs []T) {
	if len(vs) == 0 {
		return
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(vs)), ", ")
	args := make([]any, len(vs))
	for i, v := range vs {
		args[i] = string(v)
	}
	w.and(column+" IN ("+marks+")", args...)
}

func (w *where) tail(order string) string {
	if len(w.parts) == 0 {
		return order
	}
	return "WHERE " + strings.Join(w.parts, " AND ") + " " + order
}

func (s *store) Get(ctx context.Context, id extensions.ID) (Sandbox, error) {
	rows, err := readAll(ctx, s, "sandboxes", (*Sandbox).fields, "WHERE id = ?", string(id))
	return one(rows, err, "sandbox", string(id))
}

func (s *store) ByName(ctx context.Context, account, name string) (Sandbox, error) {
	rows, err := readAll(ctx, s, "sandboxes", (*Sandbox).fields, "WHERE account = ? AND claim = ?", account, name)
	return one(rows, err, "live sandbox named", name)
}

func (s *store) List(ctx context.Context, f Filter) ([]Sandbox, error) {
	var w where
	w.account(f.Account)
	w.equal("name", f.Name)
	w.equal("host", f.Host)
	w.equal("extension", f.Extension)
	oneOf(&w, "state", f.States)
	if !f.ExpiredBy.IsZero() {
		w.and("expires_at <> 0 AND expires_at <= ?", toMicros(f.ExpiredBy))
	}
	if f.Live {
		w.and("state <> ?", string(lifecycle.Destroyed))
	}
	return readAll(ctx, s, "sandboxes", (*Sandbox).fields, w.tail("ORDER BY created_at, id"), w.args...)
}

func (s *store) OpenIntents(ctx context.Context, f IntentFilter) ([]Intent, error) {
	var w where
	w.and("open_key IS NOT NULL")
	w.account(f.Account)
	w.equal("subject", f.Subject)
	return readAll(ctx, s, "intents", (*Intent).fields, w.tail("ORDER BY started_at, op_key"), w.args...)
}

func (s *store) Intent(ctx context.Context, key string) (Intent, error) {
	rows, err := readAll(ctx, s, "intents", (*Intent).fields, "WHERE op_key = ?", key)
	return one(rows, err, "operation", key)
}

func (s *store) Host(ctx context.Context, account, name string) (Host, error) {
	rows, err := readAll(ctx, s, "hosts", (*Host).fields, "WHERE account = ? AND name = ?", account, name)
	return one(rows, err, "host", name)
}

func (s *store) Hosts(ctx context.Context, account string) ([]Host, error) {
	var w where
	w.account(account)
	return readAll(ctx, s, "hosts", (*Host).fields, w.tail("ORDER BY account, name"), w.args...)
}

func (s *store) GetSnapshot(ctx context.Context, id string) (Snapshot, error) {
	rows, err := readAll(ctx, s, "snapshots", (*Snapshot).fields, "WHERE id = ?", id)
	return one(rows, err, "snapshot", id)
}

func (s *store) Snapshots(ctx context.Context, f SnapshotFilter) ([]Snapshot, error) {
	var w where
	w.account(f.Account)
	w.equal("sandbox_id", string(f.SandboxID))
	oneOf(&w, "state", f.States)
	if f.Live {
		w.and("state <> ?", string(SnapshotDeleted))
	}
	return readAll(ctx, s, "snapshots", (*Snapshot).fields, w.tail("ORDER BY created_at, id"), w.args...)
}

func (s *store) Meters(ctx context.Context, id extensions.ID) ([]Meter, error) {
	if s.reader == nil {
		return nil, nil
	}
	return loadMeters(ctx, s, s.reader, "WHERE sandbox_id = ? ORDER BY generation", string(id))
}

func loadMeters(ctx context.Context, s *store, q queryer, tail string, args ...any) ([]Meter, error) {
	ms, err := selectAll(ctx, s, q, "meters", (*Meter).fields, tail, args...)
	if err != nil {
		return nil, err
	}
	for i := range ms {
		var meter string
		ms[i].Segments, err = selectAll(ctx, s, q, "meter_segments", func(seg *Segment) []field { return seg.fields(&meter) },
			"WHERE meter_id = ? ORDER BY seq", ms[i].ID)
		if err != nil {
			return nil, err
		}
	}
	return ms, nil
}

func (s *store) Charges(ctx context.Context, id extensions.ID) ([]Charge, error) {
	return readAll(ctx, s, "charges", (*Charge).fields,
		"WHERE meter_id IN (SELECT id FROM meters WHERE sandbox_id = ?) ORDER BY meter_id, segment, component", string(id))
}

func (s *store) Quote(ctx context.Context, digest string) (Quote, error) {
	var sums json.RawMessage
	rows, err := readAll(ctx, s, "quotes", func(q *Quote) []field { return q.fields(&sums) }, "WHERE digest = ?", digest)
	q, err := one(rows, err, "quote", digest)
	if err != nil {
		return q, err
	}
	var books []string
	if err := json.Unmarshal(sums, &books); err != nil {
		return q, failuref(extensions.KindInternal, "quote %s has unreadable prices: %w", digest, err)
	}
	for _, sum := range books {
		ps, err := readAll(ctx, s, "price_books", (*PriceBook).fields, "WHERE sha256 = ?", sum)
		p, err := one(ps, err, "price book", sum)
		if err != nil {
			return q, err
		}
		q.Prices = append(q.Prices, p)
	}
	return q, nil
}
