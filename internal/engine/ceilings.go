package engine

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
)

// The ceiling of places that send a bill, where no policy has one of its own:
// enough for people and for test runs, and the end of a loop.
const (
	defaultCreates   = 500
	defaultCreateFor = time.Hour
)

// ceilings are those of every policy of the account, which all hold, and for
// metered places the default.
func (e *Engine) ceilings(metered bool) []ledger.Ceiling { return e.ceilingsOf(e.account, metered) }

func (e *Engine) ceilingsOf(account string, metered bool) []ledger.Ceiling {
	var out []ledger.Ceiling
	bounded := false
	for _, c := range e.catalog.Ceilings(account) {
		bounded = bounded || c.Currency == ""
		out = append(out, ledger.Ceiling{Source: c.Policy, Scope: c.Scope, Currency: c.Currency, Max: c.Max, Per: c.Per})
	}
	if metered && !bounded {
		out = append(out, ledger.Ceiling{Source: "the default for places that send a bill", Scope: account, Max: defaultCreates, Per: defaultCreateFor, Metered: true})
	}
	return out
}

// metered reports that somebody may send a bill: the place of choice, or one
// that may be tried after it.
func (p *prepared) metered() bool {
	for _, c := range append([]*route.Candidate{p.decision.Chosen}, p.decision.Fallbacks...) {
		if c != nil && !selfHosted(c) {
			return true
		}
	}
	return false
}
