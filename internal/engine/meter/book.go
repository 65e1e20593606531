package meter

import "strings"

// Confidence says how reliable a price is.
type Confidence string

const (
	ConfidenceExact     Confidence = "exact"     // the seller's own published price
	ConfidenceEstimated Confidence = "estimated" // derived, or from a third party
	ConfidenceUnknown   Confidence = "unknown"   // charged, but the amount is unknown
)

// Book is a dated price list with its source: one file of a catalog's prices folder. It prices one
// extension binding, or with handler every metered binding of a vendor without a book of its own. Strings
// are kept as written; Validate checks them all.
//
//	id: prices.e2b                 # unique in the catalog
//	extension: ext.e2b             # the binding it prices; or handler: e2b
//	version: "2026-08-22"
//	as_of: "2026-08-22"            # when the source was read, YYYY-MM-DD
//	valid_until: "2027-08-22"      # optional; default as_of + 365 days
//	source: https://e2b.dev/docs/billing
//	currency: USD
//	confidence: exact              # exact | estimated | unknown
//	billing: wall-clock            # wall-clock | active-cpu | invocation | fixed
//	idle: zero                     # zero | storage-only | metered: what a paused sandbox costs
//	counts: reserved               # reserved | larger: of what was asked for and what was used
//	defaults: { cpu: "2", memory_mb: 512, disk_mb: 10240 }   # sizes if the profile sets none
//	memory_mb_per_cpu: 2048        # the least memory that a vCPU comes with
//	notes: ["100 USD of free credit for new accounts is not deducted"]
//	components:
//	  - { component: creation, unit: creation, price: "0.0000006" }
//	  - { component: vcpu, unit: vcpu-second, price: "0.000014", minimum: 60s, increment: 1s }
//	  - { component: memory, unit: gib-second, price: "0.0000045", paused_price: "0.0000001" }
//	  - { component: gpu, model: H100, unit: gpu-hour, price: "3.95" }
//	  - { component: egress, unit: egress-gb, price: "0.15", included: 5 }
//	  - { component: snapshot, unit: snapshot-gib-month, price: "0.08" }    # of keeping one; no sandbox pays it
//	  - { component: surcharge, unit: charged, price: "0.25", region: eu, label: region }
//	  - { component: surcharge, unit: charged, price: "0.75", region: "*", label: region }   # any other
type Book struct {
	ID         string     `yaml:"id" json:"id"`
	Extension  string     `yaml:"extension" json:"extension,omitempty"`
	Handler    string     `yaml:"handler" json:"handler,omitempty"`
	Version    string     `yaml:"version" json:"version"`
	AsOf       string     `yaml:"as_of" json:"as_of"`
	ValidUntil string     `yaml:"valid_until" json:"valid_until,omitempty"`
	Source     string     `yaml:"source" json:"source"`
	Currency   Currency   `yaml:"currency" json:"currency"`
	Confidence Confidence `yaml:"confidence" json:"confidence"`
	// Billing is one of the extensions.Billing… shapes. Under active-cpu, the vcpu component counts CPU
	// time used, the others wall-clock time. Under invocation, only counted components are allowed. Under
	// fixed, paused time costs as much as running time.
	Billing string `yaml:"billing" json:"billing"`
	// Idle is one of the extensions.Idle… models; "" = zero, or under fixed metered.
	Idle string `yaml:"idle" json:"idle,omitempty"`
	// Counts is CountsReserved (also "") or CountsLarger, which charges CPU and memory by use if more was
	// used than requested.
	Counts   string       `yaml:"counts" json:"counts,omitempty"`
	Defaults BookDefaults `yaml:"defaults" json:"defaults,omitzero"`
	// MemoryMBPerCPU is the memory in MiB that comes with each vCPU and is charged if less is requested; 0
	// = charge what is requested.
	MemoryMBPerCPU int64       `yaml:"memory_mb_per_cpu" json:"memory_mb_per_cpu,omitempty"`
	Notes          []string    `yaml:"notes" json:"notes,omitempty"`
	Components     []BookPrice `yaml:"components" json:"components"`
	// Where is the book's position, for messages: "catalog/prices/mine.yaml:5".
	Where string `yaml:"-" json:"-"`
}

// What a metered vendor counts.
const (
	CountsReserved = "reserved"
	CountsLarger   = "larger"
)

// AnyRegion is the region of a price for every region without a price of its own.
const AnyRegion = "*"

// BookDefaults are the sizes that a place gives unless asked for others; zero values are unknown.
type BookDefaults struct {
	CPU      string `yaml:"cpu" json:"cpu,omitempty"` // vCPUs, at most three decimals
	MemoryMB int64  `yaml:"memory_mb" json:"memory_mb,omitempty"`
	DiskMB   int64  `yaml:"disk_mb" json:"disk_mb,omitempty"`
}

// BookPrice is the price of one component.
type BookPrice struct {
	Component string `yaml:"component" json:"component"`
	Unit      string `yaml:"unit" json:"unit"`
	// Price is a decimal per unit in the book's currency with at most twelve decimals. It is empty exactly
	// if the confidence is unknown.
	Price string `yaml:"price" json:"price,omitempty"`
	// PausedPrice replaces, while paused, what Idle says about this component.
	PausedPrice string `yaml:"paused_price" json:"paused_price,omitempty"`
	Model       string `yaml:"model" json:"model,omitempty"`   // gpu: this model only; "" = any other
	Region      string `yaml:"region" json:"region,omitempty"` // only in this region; "*" = any known one; the more specific wins
	Label       string `yaml:"label" json:"label,omitempty"`   // surcharge: distinguishes several
	// Minimum and Increment are Go durations in whole milliseconds. Billed time is rounded up to the
	// increment and is at least the minimum.
	Minimum   string `yaml:"minimum" json:"minimum,omitempty"`
	Increment string `yaml:"increment" json:"increment,omitempty"`
	// Included is the number of units that each sandbox gets free.
	Included int64 `yaml:"included" json:"included,omitempty"`
	// Confidence and Source replace the book's for this price.
	Confidence Confidence `yaml:"confidence" json:"confidence,omitempty"`
	Source     string     `yaml:"source" json:"source,omitempty"`
}

// FieldError names the wrong field of a book, so that a catalog can point at its line. Path is as in
// {"components", "2", "price"}; empty means the whole book.
type FieldError struct {
	Path []string
	Err  error
}

func (e *FieldError) Error() string {
	if len(e.Path) == 0 {
		return e.Err.Error()
	}
	return strings.Join(e.Path, ".") + ": " + e.Err.Error()
}

func (e *FieldError) Unwrap() error { return e.Err }
