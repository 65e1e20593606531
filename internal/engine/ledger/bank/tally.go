package bank

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Dimension is a property that usage can be grouped by.
type Dimension string

// Dimensions.
const (
	ByAccount   Dimension = "account"
	ByProfile   Dimension = "profile"
	ByExtension Dimension = "extension"
	ByHost      Dimension = "host"
	ByActor     Dimension = "actor"
	ByHarness   Dimension = "harness"
	ByRunID     Dimension = "run_id"
	BySandbox   Dimension = "sandbox" // with its name
	ByDay       Dimension = "day"     // of the meter's end, in UTC
	ByComponent Dimension = "component"
)

// Dimensions lists them all.
func Dimensions() []Dimension {
	return []Dimension{ByAccount, ByProfile, ByExtension, ByHost, ByActor, ByHarness, ByRunID, BySandbox, ByDay, ByComponent}
}

// UsageRow sums what ended. Fields that it is not grouped by are empty.
type UsageRow struct {
	Account, Profile, Extension, Host string
	Actor, Harness, RunID             string
	SandboxID                         extensions.ID
	Name                              string    // of the sandbox
	Day                               time.Time // its start
	Component                         string

	Currency string // "" = no price
	// Meters counts lives; a re-created sandbox has more than one. When grouped by component, it counts the
	// lives charged for that component.
	// A kept snapshot is no life.
	Meters int64
	// Estimated counts lives with an estimated end.
	Estimated int64
	Sums      // of those lives
	// Unit and Quantity, in quanta of the unit, are set when grouped by component.
	Unit     string
	Quantity *big.Int
}

// Tally sums meters whose charges are not in a database, such as running ones, the way Ledger.Usage does.
// Its memory grows with its rows.
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

// NewTally groups meters by dimensions, and always by currency.
func NewTally(by ...Dimension) *Tally {
	return &Tally{by: by, rows: map[tallyKey]*UsageRow{}}
}

// Add counts a meter, whose segments must have ended, and its charges. KindInvalid if a sum overflows.
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

// Rows returns the rows, ordered by all their dimensions.
func (t *Tally) Rows() []UsageRow {
	var out []UsageRow
	for _, r := range t.rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b UsageRow) int {
		return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Profile, b.Profile),
			cmp.Compare(a.Extension, b.Extension),
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
	if m.SnapshotID != "" {
		return
	}
	r.Meters++
	if m.EndEstimated {
		r.Estimated++
	}
	r.time(m.Segments)
}
