package bank

import (
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// Insufficient carries the limit that refuses a Reserve. It is wrapped in KindExhausted.
type Insufficient struct {
	Limit           string // the limit's name: "wallet of acme", "budget month of acme/web"
	Need, Available int64  // nano-units; Available is at least 0
	Held            int64  // already set aside, in addition to Need; nano-units
	Beside          int64  // counted for other planned sandboxes; nano-units
	Currency        string
	TTL             time.Duration
	Fits            time.Duration // the longest ttl that passes; 0 = none
	// Part says that Need is only the wallet's part; the rest is paid to somebody else.
	Part bool
}

func (e *Insufficient) Error() string {
	text := "needs " + meter.Amount(e.Need).String() + " " + e.Currency
	if e.Held > 0 {
		text += " more"
	}
	if e.TTL > 0 {
		text += " for a ttl of " + shortDuration(e.TTL)
	}
	if e.Held > 0 {
		text += " (" + meter.Amount(e.Held).String() + " is already set aside)"
	}
	text += fmt.Sprintf(", %s available (limit: %s)", meter.Amount(e.Available), e.Limit)
	if e.Beside > 0 {
		text += fmt.Sprintf(" after %s for others in this plan", meter.Amount(e.Beside))
	}
	if e.Fits > 0 {
		text += "; a ttl of at most " + shortDuration(e.Fits) + " fits"
	}
	return text
}

// Unpriced refuses a sandbox whose price is unknown because a hard budget is set. It is wrapped in
// KindExhausted.
type Unpriced struct {
	Limit string // "budget month of acme/web"
}

func (e *Unpriced) Error() string {
	return "its price is unknown, so it cannot be kept below a hard limit (limit: " + e.Limit + ")"
}

// shortDuration formats d without zero parts: 5h51m.
func shortDuration(d time.Duration) string {
	out := ""
	for _, u := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / u.size; n > 0 {
			out += fmt.Sprintf("%d%s", n, u.name)
			d -= n * u.size
		}
	}
	if out == "" {
		return "0s"
	}
	return out
}
