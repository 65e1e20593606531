package sqlstore

import (
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
)

// outboxes checks that deliveries refer to events that exist.
func (a *audit) outboxes([]chain.Head) error {
	for _, c := range []struct{ what, stmt string }{
		{"which is missing", `SELECT sink, stream, seq FROM outbox o
			WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.stream = o.stream AND e.seq = o.seq) ORDER BY sink, stream, seq`},
		{"which comes after the chain's end", `SELECT sink, stream, attempted FROM sinks s
			WHERE attempted > (SELECT coalesce(max(e.seq), 0) FROM events e WHERE e.stream = s.stream) ORDER BY sink, stream`},
		{"withheld for an unknown reason", `SELECT sink, stream, seq FROM outbox
			WHERE state NOT IN ('` + string(ledger.WithheldRejected) + `', '` + string(ledger.WithheldAmbiguous) + `') ORDER BY sink, stream, seq`},
		{"which comes before the last delivered event",
			`SELECT sink, stream, attempted FROM sinks WHERE attempted < delivered ORDER BY sink, stream`},
	} {
		err := query(a.ctx, a.store, a.q, c.stmt, nil, func(scan func(...any) error) error {
			var sink, stream string
			var seq int64
			err := scan(&sink, &stream, &seq)
			a.Problem("the outbox of %s refers to event %s, %s", sink, fmt.Sprintf("%s/%d", stream, seq), c.what)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
