package sqlstore

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
)

// audit compares the database with its chain and with itself.
type audit struct {
	*store
	*chain.Audit
	ctx context.Context
	q   queryer // one snapshot of the database
}

func (a *audit) add(problems []string) { a.Report.Problems = append(a.Report.Problems, problems...) }

func (s *store) Verify(ctx context.Context, pinned ...chain.Head) (chain.Report, error) {
	a := &audit{store: s, ctx: ctx, Audit: chain.NewAudit(s.id)}
	if s.reader == nil {
		a.Pins(pinned)
		return a.Report, nil
	}
	defects, err := s.dialect.check(ctx, s.reader)
	if err != nil {
		return a.Report, s.dialect.classify(err, "checking "+s.url)
	}
	a.Report.Problems = defects
	view, err := s.reader.BeginTx(ctx, s.dialect.view)
	if err != nil {
		return a.Report, s.dialect.classify(err, "checking "+s.url)
	}
	defer func() { _ = view.Rollback() }()
	a.q = view
	for _, check := range []func([]chain.Head) error{a.chains, a.rows, a.committed, a.operations, a.metering, a.funds, a.outboxes, a.itself} {
		err := check(pinned)
		var damaged *unreadable
		if errors.As(err, &damaged) {
			a.Problem("%v", damaged)
		} else if err != nil {
			return a.Report, err
		}
	}
	return a.Report, nil
}

// chains checks every event, and where the streams end.
func (a *audit) chains(pinned []chain.Head) error {
	var e chain.Event
	var has bool // whether it has an operation: NULL means none
	stmt := "SELECT " + names(eventFields(&e)) + " FROM events ORDER BY stream, seq"
	err := query(a.ctx, a.store, a.q, stmt, nil, func(scan func(...any) error) error {
		e = chain.Event{}
		if err := scan(targets(eventRow(&e, &has))...); err != nil {
			return err
		}
		a.Next(e, has)
		return nil
	})
	if err != nil {
		return err
	}
	stored, err := selectAll(a.ctx, a.store, a.q, "streams", func(p *chain.Head) []field {
		return []field{text("stream", &p.Stream), number("seq", &p.Seq), text("hash", &p.Hash)}
	}, "ORDER BY stream")
	a.CompareHeads(stored, pinned)
	return err
}
