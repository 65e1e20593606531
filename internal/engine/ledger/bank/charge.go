package bank

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Charge is one closed line: an amount in nano-units of the currency. If it is not Known, UnitPrice and
// Amount are 0 without meaning, and the currency may be "".
type Charge struct {
	MeterID    string // set by the ledger
	Segment    int64  // 0 = of the whole meter (a creation fee)
	Component  string // cpu | memory | wall | fee | …; unique per meter and segment
	Quantity   int64
	Unit       string // what Quantity counts
	UnitPrice  int64  // pico-units of the currency per unit
	Amount     int64  // nano-units of the currency, rounded half up once
	Currency   string // usually the meter's
	Memo       string // memo account that records it; "" = billed
	Confidence string // exact | estimated | unknown
}

// Known reports whether the amount is known.
func (c Charge) Known() bool { return c.Confidence != string(meter.ConfidenceUnknown) }

// Charge returns the closed meter with the sums of these charges. KindInvalid if no meter can have such
// charges.
func (m Meter) Charge(charges []Charge) (Meter, error) {
	used, err := SumsOf(m, charges)
	if err != nil {
		return m, err
	}
	m.Used = used
	for _, c := range charges {
		if err := m.check(c); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m Meter) check(c Charge) error {
	switch {
	case c.Amount < 0 || c.Quantity < 0 || c.UnitPrice < 0:
		return fault.Errorf(extensions.KindInvalid, "the charge for %s of meter %s is negative", c.Component, m.ID)
	case !c.Known() && (c.Amount != 0 || c.UnitPrice != 0):
		return fault.Errorf(extensions.KindInvalid, "the charge for %s of meter %s has an amount, but an unknown price", c.Component, m.ID)
	case c.Segment < 0 || c.Segment > m.Last().Seq:
		return fault.Errorf(extensions.KindInvalid, "a charge for segment %d, which meter %s does not have", c.Segment, m.ID)
	}
	return nil
}
