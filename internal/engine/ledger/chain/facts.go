package chain

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// MeterFact is an event's data about the meter.
type MeterFact struct {
	ID       string       `json:"id"`
	OpenedAt string       `json:"opened_at,omitempty"`
	Mode     meter.Mode   `json:"mode,omitempty"` // of the segment begun
	ClosedAt string       `json:"closed_at,omitempty"`
	Source   string       `json:"source,omitempty"`
	Charged  string       `json:"charged,omitempty"` // id of the closed meter
	Charges  []ChargeFact `json:"charges,omitempty"`
	// Refused says which measures of the place were not believed, so that the charges are estimates.
	Refused []string `json:"measures_refused,omitempty"`
}

// ChargeFact is an event's data about a charge.
type ChargeFact struct {
	Segment   int64  `json:"segment"`
	Component string `json:"component"`
	Quantity  int64  `json:"quantity"`
	Unit      string `json:"unit"`
	UnitPrice units  `json:"unit_price_pico"`
	Amount    units  `json:"amount_nano"`
	Currency  string `json:"currency"`
	Memo      string `json:"memo,omitempty"`
}

// units is a price or an amount; null in an event if unknown.
type units struct {
	n       int64
	unknown bool
}

func (u units) MarshalJSON() ([]byte, error) {
	if u.unknown {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, u.n, 10), nil
}

func (u *units) UnmarshalJSON(raw []byte) error {
	var n *int64
	err := json.Unmarshal(raw, &n)
	if *u = (units{unknown: n == nil}); n != nil {
		u.n = *n
	}
	return err
}

// FactOf returns an event's data about a charge.
func FactOf(c bank.Charge) ChargeFact {
	unknown := !c.Known()
	return ChargeFact{c.Segment, c.Component, c.Quantity, c.Unit, units{c.UnitPrice, unknown}, units{c.Amount, unknown}, c.Currency, c.Memo}
}

// Instant formats a time as events do.
func Instant(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
