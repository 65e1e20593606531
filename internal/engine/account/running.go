package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// accrual adds up what runs, as it would be charged if it ended now.
type accrual struct {
	ctx       context.Context
	l         ledger.Ledger
	component string
	now       time.Time
	only      func([]ledger.Charge) bool                  // nil = all that runs
	live      map[string]map[extensions.ID]ledger.Sandbox // by account
	rows, sum *ledger.Tally
}

func accrued(ctx context.Context, l ledger.Ledger, f ledger.UsageFilter, by []ledger.Dimension, now time.Time) (rows, sum []ledger.UsageRow, err error) {
	return accrual{}.add(ctx, l, f, by, now)
}

func (a accrual) add(ctx context.Context, l ledger.Ledger, f ledger.UsageFilter, by []ledger.Dimension, now time.Time) (rows, sum []ledger.UsageRow, err error) {
	a.ctx, a.l, a.component, a.now, a.live = ctx, l, f.Component, now, map[string]map[extensions.ID]ledger.Sandbox{}
	a.rows, a.sum = ledger.NewTally(by...), ledger.NewTally()
	err = l.EachOpenMeter(ctx, f, a.meter)
	return a.rows.Rows(), a.sum.Rows(), err
}

func (a *accrual) meter(m ledger.Meter) error {
	if len(m.Segments) == 0 {
		return extensions.Errorf(extensions.KindInternal, "the meter %s has no segment", m.ID).WithRemedy("run `sandboxer ledger verify`")
	}
	row, err := a.row(m)
	if err != nil {
		return err
	}
	m.ClosedAt = a.end(m, row)
	m.Segments[len(m.Segments)-1].EndedAt = m.ClosedAt
	charges, err := ledger.Price(m, nil)
	if err != nil {
		return extensions.Errorf(extensions.KindOf(err), "pricing the running meter %s: %w", m.ID, err)
	}
	if a.only != nil && !a.only(charges) {
		return nil
	}
	if charges, err = a.paid(m, row.Payer, charges); err != nil {
		return err
	}
	if a.component != "" {
		charges = slices.DeleteFunc(charges, func(c ledger.Charge) bool {
			return c.Component != a.component && !strings.HasPrefix(c.Component, a.component+":")
		})
		if len(charges) == 0 {
			return nil
		}
	}
	if err := a.rows.Add(m, charges); err != nil {
		return err
	}
	return a.sum.Add(m, charges)
}

// paid tells who pays, as the settlement will.
func (a *accrual) paid(m ledger.Meter, payer string, charges []ledger.Charge) ([]ledger.Charge, error) {
	if len(charges) == 0 {
		return nil, nil
	}
	held, err := a.l.Held(a.ctx, m.SandboxID)
	return m.Paid(charges, payer, held), err
}

// row is the sandbox of a meter; empty where it has ended since.
func (a *accrual) row(m ledger.Meter) (ledger.Sandbox, error) {
	of := a.live[m.For.Account]
	if of == nil {
		rows, err := a.l.List(a.ctx, ledger.Filter{Account: m.For.Account, Live: true})
		if err != nil {
			return ledger.Sandbox{}, err
		}
		of = map[extensions.ID]ledger.Sandbox{}
		for _, row := range rows {
			of[row.ID] = row
		}
		a.live[m.For.Account] = of
	}
	return of[m.SandboxID], nil
}

// end is now, or the sandbox's deadline where that is over and nobody has
// settled it: it is charged up to there.
func (a *accrual) end(m ledger.Meter, row ledger.Sandbox) time.Time {
	at := a.now
	if d := row.ExpiresAt; !d.IsZero() && d.Before(at) {
		at = d
	}
	if last := m.Segments[len(m.Segments)-1]; at.Before(last.StartedAt) {
		at = last.StartedAt
	}
	return at
}
