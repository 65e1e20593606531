package engine

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
	deadlines map[string]map[ID]time.Time // by account
	rows, sum *ledger.Tally
}

func accrued(ctx context.Context, l ledger.Ledger, f ledger.UsageFilter, by []ledger.Dimension, now time.Time) (rows, sum []ledger.UsageRow, err error) {
	a := accrual{ctx: ctx, l: l, component: f.Component, now: now, deadlines: map[string]map[ID]time.Time{},
		rows: ledger.NewTally(by...), sum: ledger.NewTally()}
	err = l.EachOpenMeter(ctx, f, a.meter)
	return a.rows.Rows(), a.sum.Rows(), err
}

func (a *accrual) meter(m ledger.Meter) (err error) {
	if len(m.Segments) == 0 {
		return extensions.Errorf(extensions.KindInternal, "the meter %s has no segment", m.ID).WithRemedy("run `sandboxer ledger verify`")
	}
	if m.ClosedAt, err = a.end(m); err != nil {
		return err
	}
	m.Segments[len(m.Segments)-1].EndedAt = m.ClosedAt
	charges, err := ledger.Price(m, nil)
	if err != nil {
		return extensions.Errorf(extensions.KindOf(err), "pricing the running meter %s: %w", m.ID, err)
	}
	if charges, err = a.paid(m, charges); err != nil {
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
func (a *accrual) paid(m ledger.Meter, charges []ledger.Charge) ([]ledger.Charge, error) {
	if len(charges) == 0 {
		return nil, nil
	}
	held, err := a.l.Held(a.ctx, m.SandboxID)
	return m.Paid(charges, held), err
}

// end is now, or the sandbox's deadline where that is over and nobody has
// settled it: it is charged up to there.
func (a *accrual) end(m ledger.Meter) (time.Time, error) {
	of := a.deadlines[m.For.Account]
	if of == nil {
		rows, err := a.l.List(a.ctx, ledger.Filter{Account: m.For.Account, Live: true})
		if err != nil {
			return time.Time{}, err
		}
		of = map[ID]time.Time{}
		for _, row := range rows {
			of[row.ID] = row.ExpiresAt
		}
		a.deadlines[m.For.Account] = of
	}
	at := a.now
	if d := of[m.SandboxID]; !d.IsZero() && d.Before(at) {
		at = d
	}
	if last := m.Segments[len(m.Segments)-1]; at.Before(last.StartedAt) {
		at = last.StartedAt
	}
	return at, nil
}
