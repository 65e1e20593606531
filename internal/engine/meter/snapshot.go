package meter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Basis says where a price comes from.
type Basis string

const (
	BasisBook    Basis = "price-book" // a catalog's price book
	BasisHost    Basis = "host-cost"  // a share of what the host costs its owner
	BasisPerHour Basis = "per-hour"   // the binding's explicit cost per hour
	BasisUnknown Basis = "unknown"    // not stated
)

// snapshotVersion is the version of PriceSnapshot's JSON form.
const snapshotVersion = 1

// PriceSnapshot is what a sandbox is settled with: the prices at the time of its creation, reduced to
// those that apply to it. Its JSON is kept in the ledger and in the receipt of a Terraform state, so that
// another machine can settle.
type PriceSnapshot struct {
	Version     int             `json:"v"`
	Basis       Basis           `json:"basis"`
	Book        string          `json:"book,omitempty"`
	BookVersion string          `json:"book_version,omitempty"`
	Extension   string          `json:"extension"`
	AsOf        string          `json:"as_of,omitempty"`
	Source      string          `json:"source,omitempty"`
	Currency    Currency        `json:"currency,omitempty"` // empty only if nothing is priced
	Confidence  Confidence      `json:"confidence"`
	Billing     string          `json:"billing,omitempty"`
	Counts      string          `json:"counts,omitempty"` // CountsLarger; "" = what was requested
	Region      string          `json:"region,omitempty"`
	Memo        bool            `json:"memo"`           // no wallet pays, except fees: self-hosted, or the user's own key
	Kept        bool            `json:"kept,omitempty"` // of keeping a snapshot, whose size is Sizes.DiskMiB
	Sizes       Sizes           `json:"sizes"`
	Prices      []SnapshotPrice `json:"prices,omitempty"`
	Notes       []string        `json:"notes,omitempty"`
}

// SnapshotPrice is one price that applies.
type SnapshotPrice struct {
	// Component is unique within a snapshot: "vcpu", "gpu:H100", "surcharge:region".
	Component  string     `json:"component"`
	Unit       string     `json:"unit"`
	Price      *UnitPrice `json:"price"`            // nil = unknown
	Paused     *UnitPrice `json:"paused,omitempty"` // nil = not charged while paused
	Minimum    int64      `json:"minimum_ms,omitempty"`
	Increment  int64      `json:"increment_ms,omitempty"`
	Included   int64      `json:"included,omitempty"` // units
	Confidence Confidence `json:"confidence"`
	Source     string     `json:"source,omitempty"` // if it differs from the snapshot's
}

// Encode returns the canonical JSON: equal snapshots have equal bytes.
func (s PriceSnapshot) Encode() string {
	b, err := json.Marshal(s)
	if err != nil { // every field can be marshalled
		return ""
	}
	return string(b)
}

// UnknownPrices is the snapshot of a place whose price nobody stated. memo says that no wallet pays.
func UnknownPrices(extension string, memo bool) PriceSnapshot {
	return PriceSnapshot{Version: snapshotVersion, Extension: extension, Basis: BasisUnknown, Confidence: ConfidenceUnknown, Memo: memo}
}

// Digest returns the lower-case hex SHA-256 of Encode.
func (s PriceSnapshot) Digest() string {
	sum := sha256.Sum256([]byte(s.Encode()))
	return hex.EncodeToString(sum[:])
}

// DecodePriceSnapshot reads what Encode wrote. Unknown fields, an unknown version, and anything that
// Charge could not use are KindInvalid.
func DecodePriceSnapshot(text string) (PriceSnapshot, error) {
	var s PriceSnapshot
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return PriceSnapshot{}, extensions.Errorf(extensions.KindInvalid, "not a price snapshot: %w", err)
	}
	if err := s.check(); err != nil {
		return PriceSnapshot{}, err
	}
	return s, nil
}

// larger reports whether use counts if it exceeds the request.
func (s PriceSnapshot) larger() bool { return s.Basis == BasisHost || s.Counts == CountsLarger }

// FeeOnly reports whether a wallet pays only the platform's fee, because the user's own key pays the
// vendor.
func (s PriceSnapshot) FeeOnly() bool {
	return s.Memo && slices.ContainsFunc(s.Prices, func(p SnapshotPrice) bool { return base(p.Component) == ComponentFee })
}

// FeeRuns reports whether that fee grows with time.
func (s PriceSnapshot) FeeRuns() bool {
	return s.FeeOnly() && slices.ContainsFunc(s.Prices, func(p SnapshotPrice) bool {
		return base(p.Component) == ComponentFee && p.Unit != unitCreation && (p.Price == nil || *p.Price > 0)
	})
}

// WalletPaysByIt reports whether the vendor's prices determine what a wallet pays: all of it, or, with the
// user's own key, a fee that is a share of it.
func (s PriceSnapshot) WalletPaysByIt() bool {
	return !s.Memo || slices.ContainsFunc(s.Prices,
		func(p SnapshotPrice) bool { return base(p.Component) == ComponentFee && p.Unit == unitCharged })
}

// Dearest returns s with the larger of each price and its paused price. What it charges for a running life
// bounds every life of these sizes that is not longer, whenever it is paused, except for a nano-unit where
// a pause splits a line.
func (s PriceSnapshot) Dearest() PriceSnapshot {
	s.Prices = slices.Clone(s.Prices)
	for i, p := range s.Prices {
		if p.dearerPaused() {
			s.Prices[i].Price = p.Paused
		}
	}
	return s
}

func (p SnapshotPrice) dearerPaused() bool {
	return p.Price != nil && p.Paused != nil && *p.Paused > *p.Price
}

// Continued returns s for time that follows time already charged by s: without one-time charges per
// sandbox, and without minimums, which were owed before. What was left of an included amount is unknown,
// so it counts again in full.
func (s PriceSnapshot) Continued() PriceSnapshot {
	s.Prices = slices.DeleteFunc(slices.Clone(s.Prices), func(p SnapshotPrice) bool { return p.Unit == unitCreation })
	for i := range s.Prices {
		s.Prices[i].Minimum = 0
	}
	return s
}

func (s PriceSnapshot) activeCPU() bool { return s.Billing == extensions.BillingActiveCPU }

func (s PriceSnapshot) check() error {
	bad := func(format string, args ...any) error {
		return extensions.Errorf(extensions.KindInvalid, "price snapshot: "+format, args...)
	}
	if s.Version != snapshotVersion {
		return bad("version %d is not %d", s.Version, snapshotVersion)
	}
	switch s.Basis {
	case BasisUnknown:
		if len(s.Prices) == 0 {
			return nil
		}
	case BasisBook, BasisHost, BasisPerHour:
	default:
		return bad("unknown basis %q", s.Basis)
	}
	if err := s.Currency.Check(); err != nil {
		return bad("%w", err)
	}
	for i, p := range s.Prices {
		u, ok := unitNamed(p.Unit)
		if !ok || !u.sells(base(p.Component)) {
			return bad("%s is not priced per %q", p.Component, p.Unit)
		}
		if p.Price != nil && *p.Price < 0 || p.Paused != nil && *p.Paused < 0 || p.Minimum < 0 || p.Increment < 0 || p.Included < 0 {
			return bad("%s has a negative number", p.Component)
		}
		if _, err := mul(p.Included, u.perUnit); err != nil {
			return bad("%s: %w", p.Component, err)
		}
		for _, other := range s.Prices[:i] {
			if other.Component == p.Component {
				return bad("%s is priced twice", p.Component)
			}
		}
	}
	return nil
}
