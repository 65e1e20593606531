package ledger

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Tally adds up meters that no database has the charges of, such as running
// ones, in the way of Ledger.Usage. Its memory grows with its rows.
type Tally struct {
	by   []Dimension
	rows map[tallyKey]*UsageRow
}

// tallyKey is a row without its sums.
type tallyKey struct {
	of                        Attribution
	sandbox                   extensions.ID
	day                       time.Time
	component, unit, currency string
}

// NewTally tells meters apart by dimensions, and always by currency.
func NewTally(by ...Dimension) *Tally {
	return &Tally{by: by, rows: map[tallyKey]*UsageRow{}}
}

// Add counts a meter, whose segments must have ends, and its charges. A sum
// that does not fit is KindInvalid.
func (t *Tally) Add(m Meter, charges []Charge) error {
	whole := !slices.Contains(t.by, ByComponent)
	if whole {
		t.row(m, Charge{Currency: m.Currency}).live(m)
	}
	seen, unpriced := map[*UsageRow]bool{}, map[*UsageRow]bool{}
	for _, c := range charges {
		r := t.row(m, c)
		if !whole && !seen[r] {
			seen[r] = true
			r.live(m)
		}
		if !c.Known() && !unpriced[r] {
			unpriced[r] = true
			r.Unpriced++
		}
		if r.Quantity != nil {
			r.Quantity.Add(r.Quantity, big.NewInt(c.Quantity))
		}
		if err := r.book(c); err != nil {
			return err
		}
	}
	return nil
}

// Rows are in the order of all their dimensions.
func (t *Tally) Rows() []UsageRow {
	var out []UsageRow
	for _, r := range t.rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b UsageRow) int {
		return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.Extension, b.Extension),
			cmp.Compare(a.Host, b.Host), cmp.Compare(a.Actor, b.Actor), cmp.Compare(a.Harness, b.Harness), cmp.Compare(a.RunID, b.RunID),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.SandboxID, b.SandboxID), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Unit, b.Unit),
			cmp.Compare(a.Currency, b.Currency))
	})
	return out
}

func (t *Tally) row(m Meter, c Charge) *UsageRow {
	r := UsageRow{Currency: c.Currency}
	for _, d := range t.by {
		switch d {
		case ByAccount:
			r.Account = m.For.Account
		case ByProfile:
			r.Profile = m.For.Profile
		case ByExtension:
			r.Extension = m.For.Extension
		case ByHost:
			r.Host = m.For.Host
		case ByActor:
			r.Actor = m.For.Actor
		case ByHarness:
			r.Harness = m.For.Harness
		case ByRunID:
			r.RunID = m.For.RunID
		case BySandbox:
			r.SandboxID, r.Name = m.SandboxID, m.For.Name
		case ByDay:
			r.Day = m.ClosedAt.UTC().Truncate(24 * time.Hour)
		case ByComponent:
			r.Component, r.Unit, r.Quantity = c.Component, c.Unit, new(big.Int)
		}
	}
	key := tallyKey{Attribution{Account: r.Account, Name: r.Name, Profile: r.Profile, Extension: r.Extension, Host: r.Host,
		Actor: r.Actor, Harness: r.Harness, RunID: r.RunID}, r.SandboxID, r.Day, r.Component, r.Unit, r.Currency}
	if t.rows[key] == nil {
		t.rows[key] = &r
	}
	return t.rows[key]
}

func (r *UsageRow) live(m Meter) {
	r.Meters++
	if m.EndEstimated {
		r.Estimated++
	}
	r.time(m.Segments)
}

func (s *Sums) time(segments []Segment) {
	for _, seg := range segments {
		ms := seg.EndedAt.UnixMilli() - seg.StartedAt.UnixMilli()
		if seg.Mode == Paused {
			s.Paused += ms
		} else {
			s.Running += ms
		}
	}
}

// payer is who pays, by the account a charge is a memo of: the sum, and the
// count of what is not known.
func (s *Sums) payer(memo string) (sum, unknown *int64) {
	switch {
	case memo == "":
		return &s.Wallet, &s.WalletUnknown
	case strings.HasPrefix(memo, AccountBYOK+":"):
		return &s.OwnKey, &s.OwnKeyUnknown
	}
	return &s.OwnPlace, &s.OwnPlaceUnknown
}

func (s *Sums) book(c Charge) error {
	sum, unknown := s.payer(c.Memo)
	if !c.Known() {
		*unknown++
		return nil
	}
	if c.Amount > 0 && *sum > math.MaxInt64-c.Amount {
		return failuref(extensions.KindInvalid, "usage adds up to more than can be told: %s and %s", meter.Amount(*sum), meter.Amount(c.Amount))
	}
	*sum += c.Amount
	return nil
}

// sumsOf are those of a meter with these charges.
func sumsOf(m Meter, charges []Charge) (Sums, error) {
	var s Sums
	s.time(m.Segments)
	for _, c := range charges {
		if c.Currency != m.Currency {
			s.Mixed = true
			continue
		}
		if !c.Known() {
			s.Unpriced = 1
		}
		if err := s.book(c); err != nil {
			return s, err
		}
	}
	return s, nil
}
