package plan

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// The default ceiling for places that bill, if no policy sets one: enough for people and test runs, but it
// stops a runaway loop.
const (
	defaultCreates   = 500
	defaultCreateFor = time.Hour
)

// Ceilings returns the ceilings of every policy of an account, which all apply, and the default for
// metered places.
func Ceilings(c *catalog.Catalog, account string, metered bool) []ledger.Ceiling {
	var out []ledger.Ceiling
	bounded := false
	for _, c := range c.Ceilings(account) {
		bounded = bounded || c.Currency == ""
		out = append(out, ledger.Ceiling{Source: c.Policy, Scope: c.Scope, Currency: c.Currency, Max: c.Max, Per: c.Per})
	}
	if metered && !bounded {
		out = append(out, ledger.Ceiling{Source: "the default for metered places", Scope: account, Max: defaultCreates, Per: defaultCreateFor,
			Metered: true})
	}
	return out
}
