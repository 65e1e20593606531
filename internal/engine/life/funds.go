package life

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// plannedFunds predicts whether a create would be refused for want of funds: it checks the worst case of
// the likely choice against current balances and budgets, and against the needs of Request.Together. It
// only predicts; the create decides. A missing ledger counts as empty; an unreadable one is reported
// elsewhere.
func (m *Manager) plannedFunds(ctx context.Context, d *plan.Decision) error {
	limits := m.limitsFor(ctx, d.Evidence.Account, d.Request.Name, d.Request.Leaving)
	need, err := d.Need(limits)
	if err != nil {
		return err
	}
	told, err := m.afford(ctx, need, limits, d.Request.Together)
	d.Notices = append(d.Notices, told...)
	return err
}

// plannedExtension is plannedFunds for a later deadline of a live sandbox.
func (m *Manager) plannedExtension(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, deadline time.Time,
	together *plan.Together) ([]notice.Notice, error) {
	need, more, err := m.extension(ctx, l, row, deadline)
	if err != nil || !more {
		return nil, err
	}
	limits := m.limitsFor(ctx, row.Account, "", []extensions.ID{row.ID})
	if limits == nil {
		return nil, nil
	}
	return m.afford(ctx, need, limits, together)
}

// afford checks a need against the limits and the other sandboxes of its plan. Several goroutines may call
// it.
func (m *Manager) afford(ctx context.Context, need plan.Need, limits *plan.Limits, together *plan.Together) ([]notice.Notice, error) {
	paces := m.paces(ctx, need, limits)
	m.planned.Lock()
	defer m.planned.Unlock()
	return need.Afford(limits, paces, together)
}

// liabilityOf returns the liability of a live sandbox; false if no meter runs.
func (m *Manager) liabilityOf(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) (plan.Liability, bool, error) {
	meters, err := l.Meters(ctx, row.ID)
	if err != nil {
		return plan.Liability{}, false, err
	}
	return plan.LiabilityOf(row, meters, m.capabilities(row.Extension))
}

// extension returns what a later deadline needs beyond the current hold; false if it needs nothing.
func (m *Manager) extension(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, deadline time.Time) (plan.Need, bool, error) {
	w, runs, err := m.liabilityOf(ctx, l, row)
	if err != nil || !runs {
		return plan.Need{}, false, err
	}
	return w.Extension(m.catalog, row, deadline)
}

// releaseSurplus returns the release of what a settled deadline no longer needs; nil if that is unknown.
func (m *Manager) releaseSurplus(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, deadline time.Time) *ledger.Reserve {
	w, runs, err := m.liabilityOf(context.WithoutCancel(ctx), l, row)
	if err != nil || !runs {
		return nil // held until the sandbox ends
	}
	return w.Settled(deadline.Sub(row.CreatedAt))
}

// paces returns the paces of the ceilings that the plan counts against; none if they cannot be read: the
// transaction that begins counts again.
func (m *Manager) paces(ctx context.Context, need plan.Need, limits *plan.Limits) []ledger.Pace {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil
	}
	ceilings, reserve := need.Paced(limits)
	paces, err := l.Paces(ctx, ceilings, reserve)
	if err != nil {
		return nil
	}
	return paces
}

// limits returns the balances and budgets of an account's org; nil if they cannot be read.
func (m *Manager) limits(ctx context.Context, account string) *plan.Limits {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil
	}
	org := ledger.StreamOf(account)
	balances, err := l.Balances(ctx, org)
	if err != nil {
		return nil
	}
	budgets, err := l.Budgets(ctx, org)
	if err != nil {
		return nil
	}
	return &plan.Limits{Balances: balances, Budgets: budgets}
}

// limitsFor is limits with the holds of sandboxes that end before this one begins: those in leaving, the
// holder of its name, and what dead runs left.
func (m *Manager) limitsFor(ctx context.Context, account, name string, leaving []extensions.ID) *plan.Limits {
	limits := m.limits(ctx, account)
	l, err := m.book.Reader(ctx)
	if limits == nil || err != nil {
		return nil
	}
	leaving = leaving[:len(leaving):len(leaving)]
	if row, err := l.ByName(ctx, account, name); name != "" && err == nil {
		leaving = append(leaving, row.ID) // gone by then, or adopted
	}
	if left, err := m.unfinished(ctx, l); err == nil { // recovered before anything begins
		leaving = append(leaving, left...)
	}
	seen := map[extensions.ID]bool{}
	for _, id := range leaving {
		if seen[id] {
			continue
		}
		seen[id] = true
		held, err := l.Held(ctx, id)
		if err != nil {
			return nil
		}
		limits.Free = append(limits.Free, held...)
	}
	return limits
}
