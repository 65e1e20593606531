package ledger

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Dimension is something usage can be told apart by.
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
	BySandbox   Dimension = "sandbox" // and its name
	ByDay       Dimension = "day"     // of the meter's end, in UTC
	ByComponent Dimension = "component"
)

// Dimensions lists them all.
func Dimensions() []Dimension {
	return []Dimension{ByAccount, ByProfile, ByExtension, ByHost, ByActor, ByHarness, ByRunID, BySandbox, ByDay, ByComponent}
}

// UsageRow adds up what ended. Fields that it is not told apart by are empty.
type UsageRow struct {
	Account, Profile, Extension, Host string
	Actor, Harness, RunID             string
	SandboxID                         extensions.ID
	Name                              string    // of the sandbox
	Day                               time.Time // its beginning
	Component                         string

	Currency string // "" = there was no price
	// Meters counts lives; a sandbox made again has more than one. By
	// component, those the component was charged for.
	Meters int64
	// Estimated counts those whose end nobody told.
	Estimated int64
	Sums      // of those lives
	// Unit and Quantity, in quanta of the unit, are told by component.
	Unit     string
	Quantity *big.Int
}

// Sums are what lives took and cost.
type Sums struct {
	Running, Paused int64 // milliseconds
	// Nano-units, by who was to pay: the wallet; the vendor's own customer, by
	// a key of the user's; the owner of the place.
	Wallet, OwnKey, OwnPlace int64
	// Unpriced counts the lives of which something was charged for at a price
	// that nobody told. Of these charges, by who was to pay, the amounts are not
	// in the sums, which then are lower bounds.
	Unpriced                                      int64
	WalletUnknown, OwnKeyUnknown, OwnPlaceUnknown int64
	// Mixed: of a meter, there are charges in other currencies than its own,
	// which are not in its sums.
	Mixed bool
}

// day in microseconds.
const day = int64(24 * time.Hour / time.Microsecond)

// quantityPart parts quantities, whose sums may not fit, for the database.
const quantityPart = 1_000_000_000

// Usage implements Ledger.
func (s *store) Usage(ctx context.Context, f UsageFilter, by ...Dimension) ([]UsageRow, error) {
	for _, d := range by {
		if !slices.Contains(Dimensions(), d) {
			return nil, failuref(extensions.KindInvalid, "usage cannot be told apart by %q", d).WithRemedy("use one of %s", join(Dimensions()))
		}
	}
	if s.reader == nil {
		return nil, nil
	}
	stmt, args := f.usage(by)
	var out []UsageRow
	err := s.ask(ctx, func() error {
		out = nil
		return query(ctx, s, s.reader, stmt, args, func(scan func(...any) error) error {
			var r UsageRow
			var high, low int64
			fs := r.keys(by)
			fs = append(fs, text("currency", &r.Currency), text("unit", &r.Unit), number("meters", &r.Meters), number("estimated", &r.Estimated))
			fs = append(append(fs, r.amounts()...), number("high", &high), number("low", &low))
			if err := scan(targets(fs)...); err != nil {
				return err
			}
			if slices.Contains(by, ByComponent) {
				r.Quantity = new(big.Int).Mul(big.NewInt(high), big.NewInt(quantityPart))
				r.Quantity.Add(r.Quantity, big.NewInt(low))
			}
			out = append(out, r)
			return nil
		})
	})
	return out, err
}

func join[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return strings.Join(out, ", ")
}

// keys are the columns a row is told apart by.
func (r *UsageRow) keys(by []Dimension) []field {
	var out []field
	for _, d := range by {
		switch d {
		case ByAccount:
			out = append(out, text("m.account", &r.Account))
		case ByProfile:
			out = append(out, text("m.profile", &r.Profile))
		case ByExtension:
			out = append(out, text("m.extension", &r.Extension))
		case ByHost:
			out = append(out, text("m.host", &r.Host))
		case ByActor:
			out = append(out, text("m.actor", &r.Actor))
		case ByHarness:
			out = append(out, text("m.harness", &r.Harness))
		case ByRunID:
			out = append(out, text("m.run_id", &r.RunID))
		case BySandbox:
			out = append(out, text("m.sandbox_id", &r.SandboxID), text("m.name", &r.Name))
		case ByDay:
			out = append(out, stamp(fmt.Sprintf("m.closed_at / %d * %d", day, day), &r.Day))
		case ByComponent:
			out = append(out, text("c.component", &r.Component))
		}
	}
	return out
}

// usageStatement reads what is added up from one or several places.
type usageStatement struct {
	keys, group []string
	arms        []string
	args        []any
}

// usageValues is how many values an arm has.
const usageValues = 13

// arm adds a place to read from: values are meters, ends that were estimated,
// running and paused time, the three amounts, lives with what is not known, the
// three counts of it, and both parts of the quantity.
func (u *usageStatement) arm(from, currency, unit string, w *where, values ...string) {
	columns := append(slices.Clone(u.keys), currency+" AS cur", unit+" AS un")
	for i, v := range values {
		columns = append(columns, fmt.Sprintf("%s AS v%d", v, i))
	}
	u.arms = append(u.arms, "SELECT "+strings.Join(columns, ", ")+" FROM "+from+" "+w.tail(""))
	u.args = append(u.args, w.args...)
}

func (u *usageStatement) text() string {
	group := strings.Join(u.group, ", ")
	columns := slices.Clone(u.group)
	for i := range usageValues {
		columns = append(columns, fmt.Sprintf("CAST(SUM(v%d) AS BIGINT)", i))
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM (" + strings.Join(u.arms, " UNION ALL ") + ") u GROUP BY " + group + " ORDER BY " + group
}

const chargesOfMeters = "meters m JOIN charges c ON c.meter_id = m.id"

// byPayer is a value of a charge, in three columns by who was to pay.
func byPayer(value string) []string {
	return []string{
		"CASE WHEN c.memo = '' THEN " + value + " ELSE 0 END",
		"CASE WHEN c.memo LIKE '" + AccountBYOK + ":%' THEN " + value + " ELSE 0 END",
		"CASE WHEN c.memo <> '' AND c.memo NOT LIKE '" + AccountBYOK + ":%' THEN " + value + " ELSE 0 END",
	}
}

// chargeAmounts are amounts, and chargeUnknown the counts of those not known.
var (
	chargeAmounts = byPayer("c.amount")
	chargeUnknown = byPayer("CASE WHEN c.confidence = 'unknown' THEN 1 ELSE 0 END")
)

// firstOf is 1 for the first charge of its meter of those that the condition on
// c and d holds for, else 0.
func firstOf(like *where) string {
	return "CASE WHEN EXISTS (SELECT 1 FROM charges d " + like.tail("AND d.meter_id = c.meter_id AND (d.component, d.segment) < (c.component, c.segment)") + ") THEN 0 ELSE 1 END"
}

// firstUnknown is firstOf of those whose amount is not known.
func firstUnknown(like *where) string {
	like.and("d.confidence = 'unknown'")
	return "CASE WHEN c.confidence <> 'unknown' THEN 0 ELSE " + firstOf(like) + " END"
}

// usage is the statement. Without components it reads the sums that meters
// keep, and the few charges that are not in them; with them, the charges.
func (f UsageFilter) usage(by []Dimension) (string, []any) {
	var u usageStatement
	for i, k := range new(UsageRow).keys(by) {
		u.group = append(u.group, fmt.Sprintf("k%d", i))
		u.keys = append(u.keys, k.name+" AS "+u.group[i])
	}
	u.group = append(u.group, "cur", "un")
	if slices.Contains(by, ByComponent) || f.Component != "" {
		f.chargeUsage(&u, slices.Contains(by, ByComponent))
		return u.text(), u.args
	}
	u.arm("meters m", "m.currency", "''", f.meters(false), "1", "m.end_estimated", "m.running_ms", "m.paused_ms", "m.wallet", "m.own_key", "m.own_place",
		"m.unpriced", "m.wallet_unknown", "m.own_key_unknown", "m.own_place_unknown", "0", "0")
	others := f.meters(false)
	others.and("m.mixed = 1 AND c.currency <> m.currency")
	u.arm(chargesOfMeters, "c.currency", "''", others, slices.Concat([]string{"0", "0", "0", "0"}, chargeAmounts,
		[]string{firstUnknown(&where{parts: []string{"d.currency = c.currency"}})}, chargeUnknown, []string{"0", "0"})...)
	return u.text(), u.args
}

// chargeUsage reads charges, of which the first of a component, or of all that
// are asked for, counts the life.
func (f UsageFilter) chargeUsage(u *usageStatement, byComponent bool) {
	unit := "''"
	like := func() *where {
		w := &where{parts: []string{"d.currency = c.currency"}}
		if byComponent {
			w.and("d.component = c.component AND d.unit = c.unit")
		} else {
			w.component("d.", f.Component)
		}
		return w
	}
	if byComponent {
		unit = "c.unit"
	}
	lives, unpriced := like(), like()
	values := slices.Concat([]string{firstOf(lives), "m.end_estimated", "m.running_ms", "m.paused_ms"}, chargeAmounts, []string{firstUnknown(unpriced)}, chargeUnknown,
		[]string{fmt.Sprintf("c.quantity / %d", quantityPart), fmt.Sprintf("c.quantity %% %d", quantityPart)})
	u.args = slices.Concat(u.args, lives.args, unpriced.args)
	w := f.meters(false)
	w.component("c.", f.Component)
	u.arm(chargesOfMeters, "c.currency", unit, w, values...)
	// The limit, of nothing, has it decided once for each charge which is the
	// first, and not for each sum.
	columns := slices.Concat(u.group, []string{"v0", "v0 * v1 AS v1", "v0 * v2 AS v2", "v0 * v3 AS v3"})
	for i := 4; i < usageValues; i++ {
		columns = append(columns, fmt.Sprintf("v%d", i))
	}
	u.arms[0] = "SELECT " + strings.Join(columns, ", ") + " FROM (" + u.arms[0] + fmt.Sprintf(" LIMIT %d) x", int64(math.MaxInt64))
}
