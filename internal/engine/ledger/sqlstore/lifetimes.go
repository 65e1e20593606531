package sqlstore

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

func (s *store) Lifetimes(ctx context.Context, account, profile, extension string, newest int) ([]ledger.Lifetime, error) {
	if s.reader == nil || newest <= 0 {
		return nil, nil
	}
	var w where
	w.and("s.account = ? AND s.profile = ? AND m.closed_at > 0 AND m.end_estimated = 0", account, profile)
	w.equal("s.extension", extension)
	stmt := "SELECT m.opened_at, m.closed_at, CAST(COALESCE(SUM(p.ended_at - p.started_at), 0) AS BIGINT)" +
		" FROM sandboxes s JOIN meters m ON m.sandbox_id = s.id AND m.snapshot_id = ''" +
		" LEFT JOIN meter_segments p ON p.meter_id = m.id AND p.mode = 'paused' " +
		w.tail("GROUP BY m.id, m.opened_at, m.closed_at ORDER BY m.closed_at DESC, m.id LIMIT ?")
	var out []ledger.Lifetime
	err := query(ctx, s, s.reader, stmt, append(w.args, newest), func(scan func(...any) error) error {
		var opened, closed, paused int64
		err := scan(&opened, &closed, &paused)
		micros := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
		out = append(out, ledger.Lifetime{Running: micros(closed - opened - paused), Paused: micros(paused)})
		return err
	})
	return out, err
}
