package ledger

import (
	"encoding/json"
	"fmt"
	"time"
)

// Room limits how many sandboxes of an account may live at one place. It is counted in the transaction
// that takes the place, so two concurrent runs cannot both take the last slot.
type Room struct {
	Extension string // binding id; "" = any
	Host      string // name; "" = any
	Max       int64  // at least 1
}

// Full says that a place has no room. It is wrapped in KindExhausted.
type Full struct{ Live, Max int64 }

func (e *Full) Error() string {
	return fmt.Sprintf("%d of at most %d sandboxes live there", e.Live, e.Max)
}

// Occupied is the number of sandboxes that an account has at one place.
type Occupied struct {
	Extension string
	Host      string // "" for a vendor's account
	Live      int64
}

// Readiness is how long one sandbox took from creation to ready.
type Readiness struct {
	Took  time.Duration
	Route json.RawMessage // as recorded
}

// Lifetime is how long one life of a sandbox was metered.
type Lifetime struct {
	Running, Paused time.Duration
}
