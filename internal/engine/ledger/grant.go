package ledger

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Grant adds credit to an org's wallet. Debts of the org are paid from it first.
type Grant struct {
	Key      string // idempotency key
	Org      string
	Currency string
	Amount   int64 // nano-units, positive
	Note     Note  // Type defaults to "funds.granted"
}

// Check returns KindInvalid for a malformed grant.
func (g Grant) Check() error {
	if StreamOf(g.Org) == "" || StreamOf(g.Org) != g.Org || g.Currency == "" || g.Amount <= 0 {
		return fault.Errorf(extensions.KindInvalid, "a grant needs an org, a currency and an amount above zero")
	}
	return nil
}

// Clash returns the error for a key that was already used for a different grant.
func (g Grant) Clash() error {
	return fault.Errorf(extensions.KindConflict, "the key %q was used before, and not for %s %s to %s", g.Key, meter.Amount(g.Amount),
		g.Currency, g.Org).
		WithRemedy("use a new key for a new grant")
}
