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
	BasisUnknown Basis = "unknown"    // nobody said
)

// snapshotVersion is that of PriceSnapshot's JSON form.
const snapshotVersion = 1

// PriceSnapshot is what a sandbox is settled with: the prices as they were
// when it was made, reduced to those that apply to it. Its JSON is kept in the
// ledger and in the receipt of a Terraform state, so that another machine can
// settle.
type PriceSnapshot struct {
	Version     int             `json:"v"`
	Basis       Basis           `json:"basis"`
	Book        string          `json:"book,omitempty"`
	BookVersion string          `json:"book_version,omitempty"`
	Extension   string          `json:"extension"`
	AsOf        string          `json:"as_of,omitempty"`
	Source      string          `json:"source,omitempty"`
	Currency    Currency        `json:"currency,omitempty"` // empty only where nothing is priced
	Confidence  Confidence      `json:"confidence"`
	Billing     string          `json:"billing,omitempty"`
	Counts      string          `json:"counts,omitempty"` // CountsLarger; "" = what was asked for
	Region      string          `json:"region,omitempty"`
	Memo        bool            `json:"memo"` // no wallet moves but for fees: self-hosted, or the user's own key
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
	Source     string     `json:"source,omitempty"` // where it differs from the snapshot's
}

// Encode returns the canonical JSON: equal snapshots have equal bytes.
func (s PriceSnapshot) Encode() string {
	b, err := json.Marshal(s)
	if err != nil { // no field can fail to marshal
		return ""
	}
	return string(b)
}

// Digest is the lower-case hex SHA-256 of Encode.
func (s PriceSnapshot) Digest() string {
	sum := sha256.Sum256([]byte(s.Encode()))
	return hex.EncodeToString(sum[:])
}

// DecodePriceSnapshot reads what Encode wrote. Unknown fields, an unknown
// version and anything that Charge could not use are KindInvalid.
func DecodePriceSnapshot(text string) (PriceSnapshot, error) {
	var s PriceSnapshot
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return PriceSnapshot{}, extensions.Errorf(extensions.KindInvalid, "this is not a price snapshot: %w", err)
	}
	if err := s.check(); err != nil {
		return PriceSnapshot{}, err
	}
	return s, nil
}

// larger reports whether what was used counts where it is more than what was
// asked for.
func (s PriceSnapshot) larger() bool { return s.Basis == BasisHost || s.Counts == CountsLarger }

// FeeOnly reports whether all that a wallet pays is the platform's fee: the
// user's own key pays the vendor.
func (s PriceSnapshot) FeeOnly() bool {
	return s.Memo && slices.ContainsFunc(s.Prices, func(p SnapshotPrice) bool { return base(p.Component) == ComponentFee })
}

// FeeRuns reports whether that fee grows with time.
func (s PriceSnapshot) FeeRuns() bool {
	return s.FeeOnly() && slices.ContainsFunc(s.Prices, func(p SnapshotPrice) bool {
		return base(p.Component) == ComponentFee && p.Unit != unitCreation && (p.Price == nil || *p.Price > 0)
	})
}

// WalletPaysByIt reports whether the vendor's prices decide what a wallet pays:
// all of it, or with the user's own key a fee that is a share of it.
func (s PriceSnapshot) WalletPaysByIt() bool {
	return !s.Memo || slices.ContainsFunc(s.Prices, func(p SnapshotPrice) bool { return base(p.Component) == ComponentFee && p.Unit == unitCharged })
}

// Dearest is s with the larger of each price and its price while paused: what
// it charges for a life that runs bounds every life of these sizes that is not
// longer, whenever it is paused, but for a nano-unit where a pause divides a line.
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

// Continued is s for time that follows on time charged by s already: without
// what is charged once for a sandbox, and without a minimum, which is owed
// before. What an earlier charge left of an included amount is not known, and
// counts anew.
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
			return bad("%s is not sold by the %q", p.Component, p.Unit)
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
