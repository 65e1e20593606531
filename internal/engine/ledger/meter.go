package ledger

import (
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// PriceBook is dated price data as it was when used.
type PriceBook struct {
	Source  string
	Version string
	AsOf    string // date, RFC 3339
	SHA256  string // of the canonical Body; set by the ledger
	Body    json.RawMessage
}

// Quote is a price told before. It is stored under the SHA-256 of its
// canonical body.
type Quote struct {
	Digest    string // set by the ledger
	Body      json.RawMessage
	Prices    []PriceBook
	CreatedAt time.Time
}

// Meter is one running price: from a generation's start to its end.
type Meter struct {
	ID         string // sandbox id, "/", generation
	SandboxID  extensions.ID
	Generation int64
	Currency   string
	Rates      json.RawMessage // a meter.PriceSnapshot: the prices that apply until it is closed
	OpenedAt   time.Time
	ClosedAt   time.Time // zero = open
	// StartSource and EndSource say whose clock told the time:
	// backend | ours | deadline | seen-alive.
	StartSource  string
	EndSource    string
	EndEstimated bool
	For          Attribution // set by the ledger
	Used         Sums        // of the closed meter; set by the ledger
	Segments     []Segment
}

// Attribution says whom and where a meter runs for, as it was when the meter
// was opened: a sandbox that is made again may run elsewhere, for another run.
type Attribution struct {
	Account        string // org/workspace
	Name           string // of the sandbox
	Profile        string
	ProfileVersion string
	Extension      string // binding id
	Host           string // name, "" for accounts of vendors
	// The consumer of the request, whose field "consumer" is all the ledger
	// reads of it.
	Actor, Harness, RunID string
}

// Open reports a running meter.
func (m Meter) Open() bool { return m.ClosedAt.IsZero() }

// Segment is a stretch with one mode and one set of sizes. Segments are
// contiguous: each starts where the one before ends.
type Segment struct {
	Seq       int64 // 1 is the first
	Mode      Mode
	Sizes     map[string]int64 // integer quantities: milli_vcpu, memory_mib, …
	StartedAt time.Time
	EndedAt   time.Time // zero = the running one
}

// MeterOps are what a change does to the sandbox's meter, in this order.
type MeterOps struct {
	Close  *MeterClose
	Open   *MeterOpen
	Switch *MeterSwitch
}

// MeterOpen starts the meter of the (new) generation. An open one is *Stale.
type MeterOpen struct {
	At       time.Time
	Source   string
	Currency string
	Rates    json.RawMessage
	Mode     Mode // "" = running
	Sizes    map[string]int64
}

// MeterSwitch ends the running segment and starts the next. A time before
// the running segment's start is moved to it.
type MeterSwitch struct {
	At    time.Time
	Mode  Mode
	Sizes map[string]int64
}

// MeterClose ends the meter and books its charges. A time before the running
// segment's start is moved to it. Closing where nothing runs does nothing, so
// that a destroy is never blocked.
type MeterClose struct {
	At        time.Time
	Source    string
	Estimated bool
	// Usage is what the backend measured; nil where it tells nothing. The
	// ledger prices it, with the rates the meter was opened with.
	Usage *extensions.Usage
	// Booked replaces pricing: what another ledger made of the meter.
	Booked *Booked
}

// Booked are charges taken as they are; none for a meter that goes on in
// another ledger.
type Booked struct{ Charges []Charge }

// Charge is one closed line: an amount in nano-units of the currency. Where it
// is not Known, UnitPrice and Amount are 0 and say nothing, and the currency may
// be "".
type Charge struct {
	MeterID    string // set by the ledger
	Segment    int64  // 0 = of the whole meter (a creation fee)
	Component  string // cpu | memory | wall | fee | …; unique per meter and segment
	Quantity   int64
	Unit       string // what Quantity counts
	UnitPrice  int64  // pico-units of the currency per unit
	Amount     int64  // nano-units of the currency, rounded half up once
	Currency   string // the meter's; others are possible
	Memo       string // account it is a memo of; "" = billed
	Confidence string // exact | estimated | unknown
}

// Known reports whether it is known what the charge comes to.
func (c Charge) Known() bool { return c.Confidence != string(meter.ConfidenceUnknown) }
