package sqlstore

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// where collects conditions with their arguments.
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

// account selects "org/workspace", or all workspaces of an org.
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

func (s *store) Get(ctx context.Context, id extensions.ID) (ledger.Sandbox, error) {
	rows, err := readAll(ctx, s, "sandboxes", sandboxRow, "WHERE id = ?", string(id))
	return one(rows, err, "sandbox", string(id))
}

func (s *store) ByName(ctx context.Context, account, name string) (ledger.Sandbox, error) {
	rows, err := readAll(ctx, s, "sandboxes", sandboxRow, "WHERE account = ? AND claim = ?", account, name)
	return one(rows, err, "live sandbox named", name)
}

func (s *store) List(ctx context.Context, f ledger.Filter) ([]ledger.Sandbox, error) {
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
	return readAll(ctx, s, "sandboxes", sandboxRow, w.tail("ORDER BY created_at, id"), w.args...)
}

func (s *store) OpenIntents(ctx context.Context, f ledger.IntentFilter) ([]ledger.Intent, error) {
	var w where
	w.and("open_key IS NOT NULL")
	w.account(f.Account)
	w.equal("subject", f.Subject)
	return readAll(ctx, s, "intents", intentRow, w.tail("ORDER BY started_at, op_key"), w.args...)
}

func (s *store) Intents(ctx context.Context, subject string) ([]ledger.Intent, error) {
	return readAll(ctx, s, "intents", intentRow, "WHERE subject = ? ORDER BY fence", subject)
}

func (s *store) Intent(ctx context.Context, key string) (ledger.Intent, error) {
	rows, err := readAll(ctx, s, "intents", intentRow, "WHERE op_key = ?", key)
	return one(rows, err, "operation", key)
}

func (s *store) Host(ctx context.Context, account, name string) (ledger.Host, error) {
	rows, err := readAll(ctx, s, "hosts", hostRow, "WHERE account = ? AND name = ?", account, name)
	return one(rows, err, "host", name)
}

func (s *store) Hosts(ctx context.Context, account string) ([]ledger.Host, error) {
	var w where
	w.account(account)
	return readAll(ctx, s, "hosts", hostRow, w.tail("ORDER BY account, name"), w.args...)
}

func (s *store) GetSnapshot(ctx context.Context, id string) (ledger.Snapshot, error) {
	rows, err := readAll(ctx, s, "snapshots", snapshotRow, "WHERE id = ?", id)
	return one(rows, err, "snapshot", id)
}

func (s *store) ListSnapshots(ctx context.Context, f ledger.SnapshotFilter) ([]ledger.Snapshot, error) {
	var w where
	w.account(f.Account)
	if f.Live {
		w.and("state <> ?", string(ledger.SnapshotDeleted))
	}
	return readAll(ctx, s, "snapshots", snapshotRow, w.tail("ORDER BY created_at, id"), w.args...)
}

func (s *store) Meters(ctx context.Context, id extensions.ID) ([]bank.Meter, error) {
	if s.reader == nil {
		return nil, nil
	}
	return loadMeters(ctx, s, s.reader, "WHERE sandbox_id = ? AND snapshot_id = '' ORDER BY generation, length(id), id", string(id))
}

func loadMeters(ctx context.Context, s *store, q queryer, tail string, args ...any) ([]bank.Meter, error) {
	ms, err := selectAll(ctx, s, q, "meters", meterRow, tail, args...)
	if err != nil {
		return nil, err
	}
	for i := range ms {
		var meter string
		ms[i].Segments, err = selectAll(ctx, s, q, "meter_segments", func(seg *bank.Segment) []field { return segmentRow(seg, &meter) },
			"WHERE meter_id = ? ORDER BY seq", ms[i].ID)
		if err != nil {
			return nil, err
		}
	}
	return ms, nil
}

func (s *store) Charges(ctx context.Context, id extensions.ID) ([]bank.Charge, error) {
	return readAll(ctx, s, "charges", chargeRow,
		"WHERE meter_id IN (SELECT id FROM meters WHERE sandbox_id = ? AND snapshot_id = '') ORDER BY meter_id, segment, component", string(id))
}

func (s *store) Quote(ctx context.Context, digest string) (ledger.Quote, error) {
	var sums json.RawMessage
	rows, err := readAll(ctx, s, "quotes", func(q *ledger.Quote) []field { return quoteRow(q, &sums) }, "WHERE digest = ?", digest)
	q, err := one(rows, err, "quote", digest)
	if err != nil {
		return q, err
	}
	var books []string
	if err := json.Unmarshal(sums, &books); err != nil {
		return q, fault.Errorf(extensions.KindInternal, "quote %s has unreadable prices: %w", digest, err)
	}
	for _, sum := range books {
		ps, err := readAll(ctx, s, "price_books", priceBookRow, "WHERE sha256 = ?", sum)
		p, err := one(ps, err, "price book", sum)
		if err != nil {
			return q, err
		}
		q.Prices = append(q.Prices, p)
	}
	return q, nil
}
