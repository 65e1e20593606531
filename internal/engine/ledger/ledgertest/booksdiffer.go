package ledgertest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// differs compares the ledger with the books and returns the first difference; "" = none. An account without transfers
// may exist or not.
func (p *plainBooks) differs(org string, accounts []ledger.Balance, budgets []ledger.Budget, now time.Time) string {
	var want, have []ledger.Balance
	for _, b := range p.accounts {
		if b.Org == org && *b != (ledger.Balance{ID: b.ID, Org: b.Org, Kind: b.Kind, Currency: b.Currency}) {
			want = append(want, *b)
		}
	}
	for _, b := range accounts {
		if b != (ledger.Balance{ID: b.ID, Org: b.Org, Kind: b.Kind, Currency: b.Currency}) {
			have = append(have, b)
		}
	}
	byID := func(a, b ledger.Balance) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(want, byID)
	slices.SortFunc(have, byID)
	if !slices.Equal(want, have) {
		return fmt.Sprintf("accounts are %+v, should be %+v", have, want)
	}
	limits := map[string]ledger.Budget{}
	for id, b := range p.budgets {
		if ledger.StreamOf(b.Account) == org {
			limits[id] = asOf(*b, now)
		}
	}
	for _, b := range budgets {
		if w, ok := limits[b.ID]; !ok || !b.Since.Equal(w.Since) || b.Reserved != w.Reserved || b.Spent != w.Spent || b.Over != w.Over ||
			b.Limit != w.Limit || b.Hard != w.Hard || b.Period != w.Period {
			return fmt.Sprintf("budget is %+v, should be %+v", b, w)
		}
		delete(limits, b.ID)
	}
	if len(limits) > 0 {
		return fmt.Sprintf("budgets %+v are missing", limits)
	}
	return ""
}
