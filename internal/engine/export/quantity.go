package export

import (
	"math/big"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// measure is a unit of a price book in words of the FOCUS unit format.
type measure struct {
	priced string // what the price is for
	// counted is a coarser count of quanta that any quantity is exact in, with
	// so many decimals.
	counted string
	digits  int
}

var measures = map[string]measure{
	"creation":        {"Creations", "Creations", 0},
	"sandbox-second":  {"Seconds", "Seconds", 3},
	"sandbox-hour":    {"Hours", "Seconds", 3},
	"vcpu-second":     {"Core-Seconds", "Core-Seconds", 6},
	"vcpu-hour":       {"Core-Hours", "Core-Seconds", 6},
	"gib-second":      {"GiB-Seconds", "MiB-Seconds", 3},
	"gib-hour":        {"GiB-Hours", "MiB-Seconds", 3},
	"disk-gib-second": {"GiB-Seconds", "MiB-Seconds", 3},
	"disk-gib-hour":   {"GiB-Hours", "MiB-Seconds", 3},
	"disk-gib-month":  {"GiB-Months", "MiB-Seconds", 3},
	"gpu-second":      {"GPU-Seconds", "GPU-Seconds", 3},
	"gpu-hour":        {"GPU-Hours", "GPU-Seconds", 3},
	"egress-gib":      {"GiB", "B", 0},
	"egress-gb":       {"GB", "B", 0},
	"charged":         {"Units", "Units", 9},
}

// measureOf is what a charge's unit is called. One that no price book of this
// program has is shown as it is, counted in itself.
func measureOf(unit string) measure {
	if m, ok := measures[unit]; ok {
		return m
	}
	return measure{unit, unit, 0}
}

// counted is the exact quantity of the charge, in measure.counted.
func counted(c ledger.Charge) string {
	return decimalText(big.NewInt(c.Quantity), measureOf(c.Unit).digits)
}

// pricedDigits is how many decimals a quantity in priced units has at most:
// with that many, times the price is the amount before it was rounded to
// nano-units, to far below one of them.
const pricedDigits = 18

// priced is the quantity in units of the price, rounded half up where it has
// no end: an hour is 3 600 000 ms.
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

// decimalText writes n x 10^-digits without a point where it is whole.
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

// Who is to pay for a charge.
const (
	PaidByWallet   = "wallet"    // the platform bills it
	PaidByOwnKey   = "own-key"   // the vendor bills it, to the owner of the key
	PaidByOwnPlace = "own-place" // nobody bills it: it runs on a place of one's own
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

// What nobody knows of a charge is "", which is null: never a 0.

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

// billed is what the platform bills of the charge.
func billed(c ledger.Charge) string {
	if c.Memo != "" {
		return meter.Amount(0).String()
	}
	return amountOf(c)
}

// billedIn is billed where it is known in which currency.
func billedIn(c ledger.Charge) string {
	if c.Currency == "" {
		return ""
	}
	return billed(c)
}
