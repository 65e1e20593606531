package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// accrual sums what runs, as it would be charged if it ended now.
type accrual struct {
	ctx       context.Context
	l         *ledger.Ledger
	component string
	now       time.Time
	only      func([]ledger.Charge) bool                  // nil = all that runs
	measured  map[extensions.ID]bank.Measured             // by its place; without it, by time
	live      map[string]map[extensions.ID]ledger.Sandbox // by account
	rows, sum *bank.Tally
}

func (a accrual) add(ctx context.Context, l *ledger.Ledger, f ledger.UsageFilter, by []ledger.Dimension,
	now time.Time) (rows, sum []ledger.UsageRow, err error) {
	a.ctx, a.l, a.component, a.now, a.live = ctx, l, f.Component, now, map[string]map[extensions.ID]ledger.Sandbox{}
	a.rows, a.sum = bank.NewTally(by...), bank.NewTally()
	err = l.EachOpenMeter(ctx, f, a.meter)
	return a.rows.Rows(), a.sum.Rows(), err
}

func (a *accrual) meter(m ledger.Meter) error {
	if len(m.Segments) == 0 {
		return extensions.Errorf(extensions.KindInternal, "the meter %s has no segment", m.ID).WithRemedy("run `sandboxer ledger verify`")
	}
	payer, deadline, err := a.owner(m)
	if err != nil {
		return err
	}
	m.ClosedAt = a.end(m, deadline)
	m.Segments[len(m.Segments)-1].EndedAt = m.ClosedAt
	var used *extensions.Usage
	if m.SnapshotID == "" {
		used = a.measured[m.SandboxID].Usage
	}
	charges, err := bank.Price(m, used)
	if err != nil {
		return extensions.Errorf(extensions.KindOf(err), "pricing the running meter %s: %w", m.ID, err)
	}
	if a.only != nil && !a.only(charges) {
		return nil
	}
	if charges, err = a.paid(m, payer, charges); err != nil {
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

// paid assigns who pays, as the settlement will.
func (a *accrual) paid(m ledger.Meter, payer string, charges []ledger.Charge) ([]ledger.Charge, error) {
	if len(charges) == 0 {
		return nil, nil
	}
	held, err := a.l.Held(a.ctx, extensions.ID(m.Subject()))
	return m.Paid(charges, payer, held), err
}

// owner returns who pays for a meter, and when it ends at the latest; zero values if it has ended since.
func (a *accrual) owner(m ledger.Meter) (payer string, deadline time.Time, err error) {
	if m.SnapshotID != "" {
		s, err := a.l.GetSnapshot(a.ctx, m.SnapshotID)
		return s.Payer, s.LapsesAt, err
	}
	row, err := a.row(m)
	return row.Payer, row.ExpiresAt, err
}

// row returns the sandbox of a meter; empty if it has ended since.
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

// end returns now, or the deadline if that has passed without settlement, since it is charged up
// to there.
func (a *accrual) end(m ledger.Meter, d time.Time) time.Time {
	at := a.now
	if !d.IsZero() && d.Before(at) {
		at = d
	}
	if last := m.Segments[len(m.Segments)-1]; at.Before(last.StartedAt) {
		at = last.StartedAt
	}
	return at
}
