package plan

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
)

// credit tells for which places platform credit would pay: all metered ones if the request or the binding
// says so; if neither says anything, those priced in a currency in which the org was ever granted credit.
// An unknown price may be in any currency.
type credit struct {
	requested string          // platform | byok; "" = unset
	granted   map[string]bool // by currency
}

// GrantedIn returns the currencies in which a wallet was ever granted credit.
func GrantedIn(balances []ledger.Balance) map[string]bool {
	granted := map[string]bool{}
	for _, b := range balances {
		if b.Kind == ledger.AccountWallet && b.CreditsPosted > 0 {
			granted[b.Currency] = true
		}
	}
	return granted
}

func (c credit) pays(cand *route.Candidate, priced meter.Currency) bool {
	if cand.Capabilities.SelfHosted() {
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
