package export

import (
	"math/big"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// measure describes a price book's unit in FOCUS's unit format.
type measure struct {
	priced string // the unit that the price is for
	// counted is a coarser unit than the quantum in which every quantity is exact with digits decimals.
	counted string
	digits  int
}

var measures = map[string]measure{
	"creation":           {"Creations", "Creations", 0},
	"sandbox-second":     {"Seconds", "Seconds", 3},
	"sandbox-hour":       {"Hours", "Seconds", 3},
	"vcpu-second":        {"Core-Seconds", "Core-Seconds", 6},
	"vcpu-hour":          {"Core-Hours", "Core-Seconds", 6},
	"gib-second":         {"GiB-Seconds", "MiB-Seconds", 3},
	"gib-hour":           {"GiB-Hours", "MiB-Seconds", 3},
	"disk-gib-second":    {"GiB-Seconds", "MiB-Seconds", 3},
	"disk-gib-hour":      {"GiB-Hours", "MiB-Seconds", 3},
	"disk-gib-month":     {"GiB-Months", "MiB-Seconds", 3},
	"snapshot-gib-month": {"GiB-Months", "MiB-Seconds", 3},
	"gpu-second":         {"GPU-Seconds", "GPU-Seconds", 3},
	"gpu-hour":           {"GPU-Hours", "GPU-Seconds", 3},
	"egress-gib":         {"GiB", "B", 0},
	"egress-gb":          {"GB", "B", 0},
	"charged":            {"Units", "Units", 9},
}

// measureOf returns the name of a charge's unit. A unit unknown to this program is shown as it is and
// counted in itself.
func measureOf(unit string) measure {
	if m, ok := measures[unit]; ok {
		return m
	}
	return measure{unit, unit, 0}
}

// counted returns the exact quantity of the charge, in measure.counted.
func counted(c ledger.Charge) string {
	return decimalText(big.NewInt(c.Quantity), measureOf(c.Unit).digits)
}

// pricedDigits is the maximum number of decimals of a quantity in priced units. With that many, quantity
// times price gives the unrounded amount to far less than a nano-unit.
const pricedDigits = 18

// priced returns the quantity in units of the price, rounded half up if it does not terminate: an hour is
// 3 600 000 ms.
func priced(c ledger.Charge) string {
	per, _, ok := meter.QuantaPerUnit(c.Unit)
	if !ok {
		per = 1
	}
	n := new(big.Int).Mul(big.NewInt(c.Quantity), new(big.Int).Exp(big.NewInt(10), big.NewInt(pricedDigits), nil))
	n.Mul(n, big.NewInt(2))
	n.Add(n, big.NewInt(per))
	n.Div(n, big.NewInt(2*per))
	return decimalText(n, pricedDigits)
}

// decimalText writes n x 10^-digits, without a point if it is whole.
func decimalText(n *big.Int, digits int) string {
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	s := new(big.Int).Abs(n).String()
	if pad := digits + 1 - len(s); pad > 0 {
		s = strings.Repeat("0", pad) + s
	}
	whole, fraction := s[:len(s)-digits], strings.TrimRight(s[len(s)-digits:], "0")
	if fraction == "" {
		return sign + whole
	}
	return sign + whole + "." + fraction
}

// Who pays for a charge.
const (
	PaidByWallet   = "wallet"    // the platform bills it
	PaidByOwnKey   = "own-key"   // the vendor bills the owner of the key
	PaidByOwnPlace = "own-place" // nobody bills it: it runs on the user's own place
)

func paidBy(c ledger.Charge) string {
	switch {
	case c.Memo == "":
		return PaidByWallet
	case strings.HasPrefix(c.Memo, "byok_memo:"):
		return PaidByOwnKey
	}
	return PaidByOwnPlace
}

// An unknown value of a charge is "", which becomes null, never 0.

func amountOf(c ledger.Charge) string {
	if !c.Known() {
		return ""
	}
	return meter.Amount(c.Amount).String()
}

func unitPriceOf(c ledger.Charge) string {
	if !c.Known() {
		return ""
	}
	return meter.UnitPrice(c.UnitPrice).String()
}

// billed returns what the platform bills of the charge.
func billed(c ledger.Charge) string {
	if c.Memo != "" {
		return meter.Amount(0).String()
	}
	return amountOf(c)
}

// billedIn returns billed if its currency is known.
func billedIn(c ledger.Charge) string {
	if c.Currency == "" {
		return ""
	}
	return billed(c)
}
