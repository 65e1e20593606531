package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// plannedFunds tells in advance what a create would be refused for: the worst
// case of what it would choose is held against the balances and hard budgets of
// now, and against what the others of Request.Together need. Soft ones are
// notices. It only looks, and the create decides. A ledger that is not there is
// empty, and one that cannot be read is told of elsewhere.
func (e *Engine) plannedFunds(ctx context.Context, p *prepared, query route.Query) error {
	cand := p.decision.Chosen
	payer := e.accountOf(p.req)
	balances, budgets, free, ok := e.limits(ctx, payer, p.req)
	if ok {
		var err error
		if cand, err = e.withCredit(p, query, balances); err != nil {
			return err
		}
	}
	w := p.liabilityAt(cand)
	r, err := w.reserve(w.ttl)
	if err != nil {
		return err
	}
	one := intended{reserve: *r, account: payer, paces: e.paces(ctx, account.CeilingsOf(e.catalog, payer, p.metered()), r)}
	defer func() { p.notices = append(p.notices, reached(one.paces, "If it were made now")...) }()
	if !ok {
		return nil
	}
	one.free = free
	soft, err := p.req.Together.against(one, balances, budgets)
	for _, b := range soft {
		p.notices = append(p.notices, overSoft(b, *r))
	}
	return w.unaffordable(err, cand.ID(), w.ttl)
}

// withCredit is what a create would choose: as the plan, which is no function of
// the ledger, but for the places that credit would pay for by what was granted,
// and cannot. Where none is left, the error is that of the create.
func (e *Engine) withCredit(p *prepared, query route.Query, balances []ledger.Balance) (*route.Candidate, error) {
	first := p.decision.Chosen
	c := credit{requested: p.req.Billing, granted: grantedIn(balances)}
	query.Candidates = slices.Clone(query.Candidates)
	for i := range query.Candidates {
		cand := &query.Candidates[i]
		cand.Credit = c.pays(cand, p.quotes[cand.ID()].Currency)
	}
	d := route.Select(query)
	if err := d.Err(); err != nil {
		return nil, err
	}
	if d.Chosen.ID() == first.ID() {
		return first, nil
	}
	for _, r := range d.Refusals() {
		if r.Candidate == first.ID() {
			p.notices = append(p.notices, Notice{Summary: first.ID() + " will be refused when it is made, and " + d.Chosen.ID() + " chosen", Detail: r.Reason + ": " + r.Help})
		}
	}
	return d.Chosen, e.checkPrice(p, d.Chosen)
}

// paces are those of ceilings that what is planned counts against; none where
// they cannot be read: the transaction that begins counts anew.
func (e *Engine) paces(ctx context.Context, ceilings []ledger.Ceiling, r *ledger.Reserve) []ledger.Pace {
	l, err := e.reader(ctx)
	if err != nil {
		return nil
	}
	paces, err := l.Paces(ctx, ceilings, r)
	if err != nil {
		return nil
	}
	return paces
}

// reached tells of ceilings that would refuse now. Time makes room, and what
// ends before, so that nothing is refused yet.
func reached(paces []ledger.Pace, now string) (told []Notice) {
	for _, pace := range paces {
		if err := pace.Refusal(""); err != nil {
			told = append(told, Notice{Summary: "A ceiling of " + pace.Scope + " is reached",
				Detail: fmt.Sprintf("%s, it would be refused: %s. What to do: %s.", now, (&ledger.TooFast{Pace: pace}).Error(), extensions.RemedyOf(err))})
		}
	}
	return told
}

// limits reads the balances and budgets of an account's org, and what is set
// aside for sandboxes that end before this one begins.
func (e *Engine) limits(ctx context.Context, account string, req Request) (balances []ledger.Balance, budgets []ledger.Budget, free []ledger.Transfer, ok bool) {
	l, err := e.reader(ctx)
	if err != nil {
		return nil, nil, nil, false
	}
	org := ledger.StreamOf(account)
	if balances, err = l.Balances(ctx, org); err != nil {
		return nil, nil, nil, false
	}
	if budgets, err = l.Budgets(ctx, org); err != nil {
		return nil, nil, nil, false
	}
	leaving := req.Leaving
	if row, err := l.ByName(ctx, account, req.Name); req.Name != "" && err == nil {
		leaving = append(leaving[:len(leaving):len(leaving)], row.ID) // it has to be gone by then, or is adopted
	}
	if left, err := e.unfinished(ctx, l); err == nil { // recovered before anything is begun
		leaving = append(leaving[:len(leaving):len(leaving)], left...)
	}
	seen := map[ID]bool{}
	for _, id := range leaving {
		if seen[id] {
			continue
		}
		seen[id] = true
		held, err := l.Held(ctx, id)
		if err != nil {
			return nil, nil, nil, false
		}
		free = append(free, held...)
	}
	return balances, budgets, free, true
}

func overSoft(b ledger.Budget, r ledger.Reserve) Notice {
	return Notice{Summary: fmt.Sprintf("The budget %s of %s would be passed", b.Name, b.Account),
		Detail: fmt.Sprintf("It needs up to %s %s for a ttl of %s, and %s of %s are left. The budget is soft: nothing is refused.",
			meter.Amount(r.Amount), r.Currency, profile.FormatDuration(r.TTL), meter.Amount(max(0, b.Available())), meter.Amount(b.Limit))}
}

// plannedExtension is plannedFunds for a later end of a sandbox that lives. It
// goes by the account that the sandbox was made for, as its end does.
func (e *Engine) plannedExtension(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, ttl time.Duration, plan *Together) ([]Notice, error) {
	end := row.CreatedAt.Add(ttl)
	var c ledger.Change
	w, err := e.reserveLater(ctx, l, row, end, &c)
	if err != nil || c.Reserve == nil {
		return nil, err
	}
	balances, budgets, free, ok := e.limits(ctx, row.Account, Request{Leaving: []ID{row.ID}})
	if !ok {
		return nil, nil
	}
	more := *c.Reserve // what is set aside already counts
	for _, x := range free {
		more.Amount = max(0, more.Amount-x.Amount)
	}
	c.Ceilings = slices.DeleteFunc(c.Ceilings, func(c ledger.Ceiling) bool { return c.Currency == "" }) // nothing is begun
	one := intended{id: row.ID, account: row.Account, reserve: *c.Reserve, free: free, paces: e.paces(ctx, c.Ceilings, &more)}
	soft, err := plan.against(one, balances, budgets)
	notices := reached(one.paces, "If it were extended now")
	for _, b := range soft {
		notices = append(notices, overSoft(b, *c.Reserve))
	}
	return notices, w.unaffordable(err, fmt.Sprintf("sandbox %s (%s)", row.ID, row.Name), ttl)
}
