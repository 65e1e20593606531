package ledgertest

import (
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Bills are charges that a test sets for meters, whatever ran and at any rates. The zero value has none.
type Bills struct{ of sync.Map }

// Of is for sqlstore.Options.
func (b *Bills) Of(m ledger.Meter, usage *extensions.Usage, payer string, held []ledger.Transfer) ([]ledger.Charge, error) {
	cs, ok := b.of.Load(m.SandboxID)
	if !ok {
		return bank.Charges(m, usage, payer, held)
	}
	return cs.([]ledger.Charge), nil
}

// Put makes cs the exact charges of the sandbox's meters that close from now on.
func (b *Bills) Put(id extensions.ID, cs ...ledger.Charge) { b.of.Store(id, cs) }

// Drop charges the sandbox's meters by their rates again.
func (b *Bills) Drop(id extensions.ID) { b.of.Delete(id) }

// bills are the charges of ledgers that open opens; their ids are random.
var bills Bills
