package ledger

import (
	"context"
	"fmt"
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
			fs = append(append(fs, r.fields()...), number("high", &high), number("low", &low))
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

// usage is the statement. Without components it reads the sums each meter
// keeps; with them, the charges, where a life counts once for each component.
func (f UsageFilter) usage(by []Dimension) (string, []any) {
	var columns, group []string
	for i, k := range new(UsageRow).keys(by) {
		group = append(group, fmt.Sprintf("k%d", i))
		columns = append(columns, k.name+" AS "+group[i])
	}
	group = append(group, "cur", "un")
	w := f.meters(false)
	from, args := "meters m", []any(nil)
	money, unit := "m.currency", "''"
	sums := []string{"1", "m.end_estimated", "m.running_ms", "m.paused_ms", "m.wallet", "m.own_key", "m.own_place", "0", "0"}
	if byComponent := slices.Contains(by, ByComponent); byComponent || f.Component != "" {
		from, money = "meters m JOIN charges c ON c.meter_id = m.id", "c.currency"
		same := "d.component = c.component AND d.unit = c.unit"
		if byComponent {
			unit = "c.unit"
		} else {
			var d where
			d.component("d.", f.Component)
			same = d.parts[0]
			for range 4 {
				args = append(args, d.args...)
			}
		}
		once := " * CASE WHEN EXISTS (SELECT 1 FROM charges d WHERE d.meter_id = c.meter_id AND " + same +
			" AND (d.component, d.segment) < (c.component, c.segment)) THEN 0 ELSE 1 END"
		for i := range 4 {
			sums[i] += once
		}
		sums = slices.Concat(sums[:4], []string{
			"CASE WHEN c.memo = '' THEN c.amount ELSE 0 END",
			"CASE WHEN c.memo LIKE '" + AccountBYOK + ":%' THEN c.amount ELSE 0 END",
			"CASE WHEN c.memo <> '' AND c.memo NOT LIKE '" + AccountBYOK + ":%' THEN c.amount ELSE 0 END",
			fmt.Sprintf("c.quantity / %d", quantityPart), fmt.Sprintf("c.quantity %% %d", quantityPart)})
		w.component("c.", f.Component)
	}
	columns = append(columns, money+" AS cur", unit+" AS un")
	for _, s := range sums {
		columns = append(columns, "CAST(SUM("+s+") AS BIGINT)")
	}
	keys := strings.Join(group, ", ")
	stmt := "SELECT " + strings.Join(columns, ", ") + " FROM " + from + " " + w.tail("GROUP BY "+keys+" ORDER BY "+keys)
	return stmt, slices.Concat(args, w.args)
}
