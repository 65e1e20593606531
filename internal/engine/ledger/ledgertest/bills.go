package ledgertest

import (
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Bills are charges that a test wants of meters, whatever ran and at whatever
// rates. The zero value has none.
type Bills struct{ of sync.Map }

// Of is for ledger.Options.
func (b *Bills) Of(m ledger.Meter) ([]ledger.Charge, bool) {
	cs, ok := b.of.Load(m.SandboxID)
	if !ok {
		return nil, false
	}
	return cs.([]ledger.Charge), true
}

// Put makes exactly cs the charges of the sandbox's meters that close from now on.
func (b *Bills) Put(id extensions.ID, cs ...ledger.Charge) { b.of.Store(id, cs) }

// Drop lets the sandbox's meters be charged by their rates again.
func (b *Bills) Drop(id extensions.ID) { b.of.Delete(id) }

// bills are those of ledgers that open opens, where ids are drawn at random.
var bills Bills
