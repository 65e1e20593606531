package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// historySamples is of how many past lives a quote takes the median.
const historySamples = 200

// QuoteOptions are what a quote may know beyond a plan.
type QuoteOptions struct {
	// Expected is how long the sandbox will probably run; 0 = the median of
	// history, else its whole ttl.
	Expected time.Duration
	// History reads the ledger: how long sandboxes of the profile ran, and
	// what is left in wallet and budgets.
	History bool
}

// Quoted is a plan with what the ledger remembers. Its Estimate differs from
// that of a plan in Expected, P95 and the lines alone.
type Quoted struct {
	Planned
	// Past is how many lives of the profile the durations are taken from.
	Past  int64
	Funds []Funds
}

// Funds is what one limit leaves for the first choice.
type Funds struct {
	Limit     string `json:"limit"` // "wallet of acme", "budget month of acme/web"
	Currency  string `json:"currency"`
	Available string `json:"available"`
	Needed    string `json:"needed"` // of it, for the worst case; "" = not known
	Hard      bool   `json:"hard"`   // a create is refused where Needed is more than Available
	Enough    bool   `json:"enough"` // false too where Needed is not known
}

// Quote is Plan with what QuoteOptions add. It dials nothing and writes nothing.
func (e *Engine) Quote(ctx context.Context, req Request, o QuoteOptions) (Quoted, error) {
	if o.Expected < 0 {
		return Quoted{}, extensions.Invalid("the expected duration %s is negative", "give a duration such as 30m", o.Expected)
	}
	p, err := e.prepare(ctx, req, preparation{quote: o, tell: true})
	if p == nil {
		return Quoted{}, err
	}
	var out Quoted
	out.Planned, _ = e.planned(ctx, p, err)
	for _, h := range p.past {
		if h != nil {
			out.Past = max(out.Past, h.Count)
		}
	}
	if o.History && p.decision.Chosen != nil {
		out.Funds = e.funds(ctx, p.quotes[p.decision.Chosen.ID()])
	}
	return out, err
}

// lifetimes is how long lives of the profile ran at the binding, or where it
// has none yet anywhere; nil where a quote does not ask or there are none.
func (e *Engine) lifetimes(ctx context.Context, p *prepared, binding string, how preparation) *meter.History {
	if !how.quote.History {
		return nil
	}
	if h, ok := p.past[binding]; ok {
		return h
	}
	if p.past == nil {
		p.past = map[string]*meter.History{}
	}
	p.past[binding] = nil
	l, err := e.reader(ctx)
	if err != nil {
		return nil // a notice tells of a ledger that cannot be read
	}
	for _, at := range []string{binding, ""} {
		lives, err := l.Lifetimes(ctx, e.account, p.resolved.ID, at, historySamples)
		if err != nil || len(lives) == 0 {
			continue
		}
		p.past[binding] = historyOf(lives)
		break
	}
	return p.past[binding]
}

// historyOf takes the median and the 95th percentile, both by nearest rank.
func historyOf(lives []ledger.Lifetime) *meter.History {
	ran := make([]time.Duration, len(lives))
	for i, l := range lives {
		ran[i] = l.Running
	}
	return &meter.History{Median: percentile(ran, 50), P95: percentile(ran, 95), Count: int64(len(ran))}
}

// percentile is the one by nearest rank, from 1 to 100. It sorts all, of which
// there is at least one.
func percentile(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[(len(all)*percent+99)/100-1]
}

// funds tells what wallet and budgets leave for a quote in its currency.
func (e *Engine) funds(ctx context.Context, q meter.Quote) []Funds {
	l, err := e.reader(ctx)
	if err != nil || q.Currency == "" {
		return nil
	}
	org, _, _ := strings.Cut(e.account, "/")
	var out []Funds
	add := func(limit string, available int64, needed *meter.Amount, hard bool) {
		f := Funds{Limit: limit, Currency: string(q.Currency), Available: meter.Amount(available).String(), Needed: amount(needed), Hard: hard}
		f.Enough = needed != nil && int64(*needed) <= available
		out = append(out, f)
	}
	if balances, err := l.Balances(ctx, org); err == nil && (q.Wallet == nil || *q.Wallet > 0) {
		for _, b := range balances {
			if b.Kind == ledger.AccountWallet && b.Currency == string(q.Currency) {
				add("wallet of "+org, b.Available(), q.Wallet, true)
			}
		}
	}
	reserved := q.Reserve
	if q.Snapshot.FeeOnly() {
		reserved = q.Wallet
	}
	budgets, err := l.Budgets(ctx, org)
	if err != nil {
		return out
	}
	for _, b := range budgets {
		if b.Currency == string(q.Currency) && (b.Account == org || b.Account == e.account) {
			add("budget "+b.Name+" of "+b.Account, max(0, b.Available()), reserved, b.Hard)
		}
	}
	return out
}
