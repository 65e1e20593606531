package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// QuoteOptions are what a quote may use beyond a plan.
type QuoteOptions struct {
	// Expected is how long the sandbox will probably run; 0 = the median of past lives, else its whole ttl.
	Expected time.Duration
	// History says to read the ledger: how long sandboxes of the profile ran, and what wallet and budgets
	// have left.
	History bool
	// Ask says to ask configured places for their own estimates: it dials.
	Ask bool
}

// Quoted is a plan with the ledger's history. Its Estimate differs from that of a plan only in Expected, P95
// and the lines.
type Quoted struct {
	Planned
	// Past is the number of past lives that the durations come from.
	Past  int64
	Funds []Funds
	// Foretold are the places' own estimates, in order of choice, if they were asked.
	Foretold []Foretold
}

// Funds is what one limit has left for the first choice.
type Funds struct {
	Limit     string `json:"limit"` // "wallet of acme", "budget month of acme/web"
	Currency  string `json:"currency"`
	Available string `json:"available"`
	Needed    string `json:"needed"` // for the worst case; "" = unknown
	Hard      bool   `json:"hard"`   // a create is refused if Needed exceeds Available
	Enough    bool   `json:"enough"` // false also if Needed is unknown
}

// Quoted returns the decision as the answer to a quote, without funds.
func (d *Decision) Quoted(err error) Quoted {
	out := Quoted{Planned: d.Planned(err)}
	for _, h := range d.Evidence.Past {
		if h != nil {
			out.Past = max(out.Past, h.Count)
		}
	}
	return out
}

// Funds returns the rest of the wallet and the budgets for the first choice, in its currency.
func (d *Decision) Funds(balances []ledger.Balance, budgets []ledger.Budget) []Funds {
	if d.Choice.Chosen == nil {
		return nil
	}
	q, account := d.quotes[d.Choice.Chosen.ID()], d.Evidence.Account
	org, _, _ := strings.Cut(account, "/")
	var out []Funds
	add := func(limit string, available int64, needed *meter.Amount, hard bool) {
		f := Funds{Limit: limit, Currency: string(q.Currency), Available: meter.Amount(available).String(), Needed: amount(needed), Hard: hard}
		f.Enough = needed != nil && int64(*needed) <= available
		out = append(out, f)
	}
	for _, b := range balances {
		if b.Kind == ledger.AccountWallet && b.Currency == string(q.Currency) && (q.Wallet == nil || *q.Wallet > 0) {
			add("wallet of "+org, b.Available(), q.Wallet, true)
		}
	}
	reserved := q.Reserve
	if q.Snapshot.FeeOnly() {
		reserved = q.Wallet
	}
	for _, b := range budgets {
		if b.Currency == string(q.Currency) && (b.Account == org || b.Account == account) {
			add("budget "+b.Name+" of "+b.Account, max(0, b.Available()), reserved, b.Hard)
		}
	}
	return out
}

// HistoryOf returns the median and the 95th percentile of how long lives ran, both by nearest rank; nil
// without lives.
func HistoryOf(lives []ledger.Lifetime) *meter.History {
	if len(lives) == 0 {
		return nil
	}
	ran := make([]time.Duration, len(lives))
	for i, l := range lives {
		ran[i] = l.Running
	}
	return &meter.History{Median: Percentile(ran, 50), P95: Percentile(ran, 95), Count: int64(len(ran))}
}

// Percentile returns the given percentile, 1 to 100, by nearest rank. It sorts all, which must not be
// empty.
func Percentile(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[(len(all)*percent+99)/100-1]
}
