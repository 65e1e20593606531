package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
)

// living selects sandboxes that take room: they have a place, are not destroyed and have not passed their
// deadline.
func (w *where) living(account string, now time.Time) {
	w.account(account)
	w.and("state <> ?", string(lifecycle.Destroyed))
	w.and("state <> ?", string(lifecycle.Requested))
	w.and("expires_at > ?", toMicros(now))
}

func (s *store) Occupancy(ctx context.Context, account string) ([]ledger.Occupied, error) {
	if s.reader == nil {
		return nil, nil
	}
	var w where
	w.living(account, s.now())
	var out []ledger.Occupied
	stmt := "SELECT extension, host, count(*) FROM sandboxes " + w.tail("GROUP BY extension, host ORDER BY extension, host")
	err := query(ctx, s, s.reader, stmt, w.args, func(scan func(...any) error) error {
		var o ledger.Occupied
		err := scan(&o.Extension, &o.Host, &o.Live)
		out = append(out, o)
		return err
	})
	return out, err
}

func (s *store) ReadyTimes(ctx context.Context, account, extension, host string, newest int) ([]ledger.Readiness, error) {
	if s.reader == nil || newest <= 0 {
		return nil, nil
	}
	var out []ledger.Readiness
	const stmt = "SELECT created_at, ready_at, route FROM sandboxes WHERE account = ? AND extension = ? AND host = ?" +
		" AND generation = 1 AND ready_at > created_at ORDER BY created_at DESC, id LIMIT ?"
	err := query(ctx, s, s.reader, stmt, []any{account, extension, host, newest}, func(scan func(...any) error) error {
		var created, ready int64
		var route string
		err := scan(&created, &ready, &route)
		out = append(out, ledger.Readiness{Took: time.Duration(ready-created) * time.Microsecond, Route: json.RawMessage(route)})
		return err
	})
	return out, err
}
