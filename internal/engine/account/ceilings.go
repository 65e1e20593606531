package account

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// The ceiling of places that send a bill, where no policy has one of its own:
// enough for people and for test runs, and the end of a loop.
const (
	defaultCreates   = 500
	defaultCreateFor = time.Hour
)

// CeilingsOf are those of every policy of an account, which all hold, and for
// metered places the default.
func CeilingsOf(c *catalog.Catalog, account string, metered bool) []ledger.Ceiling {
	var out []ledger.Ceiling
	bounded := false
	for _, c := range c.Ceilings(account) {
		bounded = bounded || c.Currency == ""
		out = append(out, ledger.Ceiling{Source: c.Policy, Scope: c.Scope, Currency: c.Currency, Max: c.Max, Per: c.Per})
	}
	if metered && !bounded {
		out = append(out, ledger.Ceiling{Source: "the default for places that send a bill", Scope: account, Max: defaultCreates, Per: defaultCreateFor, Metered: true})
	}
	return out
}
