package engine

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
)

// credit tells which places platform credit would pay for: all metered ones
// where the request or the binding says so; where neither says anything, those
// priced in a currency of which the org was ever granted credit. A place of
// unknown price may be in any.
type credit struct {
	requested string          // platform | byok; "" = nothing is said
	granted   map[string]bool // by currency
}

// creditOf looks at the balances for a create alone: a plan's decision is a
// function of arguments and catalog.
func (e *Engine) creditOf(ctx context.Context, p *prepared, how preparation) credit {
	c := credit{requested: p.req.Billing}
	if p.req.Billing != "" || !how.binding {
		return c
	}
	l, err := e.book.Reader(ctx)
	if err != nil {
		return c // the transaction that begins tells what is wrong with the ledger
	}
	if balances, err := l.Balances(ctx, ledger.StreamOf(e.accountOf(p.req))); err == nil {
		c.granted = grantedIn(balances)
	}
	return c
}

func grantedIn(balances []ledger.Balance) map[string]bool {
	granted := map[string]bool{}
	for _, b := range balances {
		if b.Kind == ledger.AccountWallet && b.CreditsPosted > 0 {
			granted[b.Currency] = true
		}
	}
	return granted
}

// bounded tells what of a quote's worst case is known, of all of it and of what
// a wallet pays.
func bounded(c *route.Candidate, q meter.Quote) {
	c.Price.Unbounded, c.Price.FeeUnbounded, c.Fee = q.Reserve == nil, q.Wallet == nil, q.Snapshot.FeeRuns()
}

func (c credit) pays(cand *route.Candidate, priced meter.Currency) bool {
	if selfHosted(cand) {
		return false
	}
	switch cand.PaidAs(c.requested) {
	case route.BillingPlatform:
		return true
	case route.BillingBYOK:
		return false
	}
	return c.granted[string(priced)] || priced == "" && len(c.granted) > 0
}
