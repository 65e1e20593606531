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
	// Running and Paused are milliseconds of those lives.
	Running, Paused int64
	// Nano-units, by who was to pay: the wallet; the vendor's own customer, by
	// a key of the user's; the owner of the place.
	Wallet, OwnKey, OwnPlace int64
	// Unit and Quantity, in quanta of the unit, are told by component.
	Unit     string
	Quantity *big.Int
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
			fs = append(fs, text("currency", &r.Currency), text("unit", &r.Unit), number("meters", &r.Meters), number("estimated", &r.Estimated),
				number("life", &r.Running), number("paused", &r.Paused), number("wallet", &r.Wallet), number("own_key", &r.OwnKey),
				number("own_place", &r.OwnPlace), number("high", &high), number("low", &low))
			if err := scan(targets(fs)...); err != nil {
				return err
			}
			r.Running -= r.Paused
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

// usage is the statement: lives, what of them was paused, and charges, each
// added up where it is kept. Money and time are not joined, since a life has
// several charges and several segments.
func (f UsageFilter) usage(by []Dimension) (string, []any) {
	keys := new(UsageRow).keys(by)
	var outer, inner []string
	for i, k := range keys {
		outer = append(outer, fmt.Sprintf("k%d", i))
		inner = append(inner, k.name+" AS "+outer[i])
	}
	of, unit := "meters m", "''"
	lived, charged := f.meters(false), f.meters(false)
	charged.component(f.Component)
	switch {
	case slices.Contains(by, ByComponent):
		of, unit = "(SELECT meter_id, component, unit FROM charges GROUP BY meter_id, component, unit) c JOIN meters m ON m.id = c.meter_id", "c.unit"
		lived.component(f.Component)
	case f.Component != "":
		lived.chargedFor(f.Component)
	}
	group := strings.Join(append(outer, "currency", "unit"), ", ")
	inner = append(inner, "")
	arm := func(from, currency string, w *where, sums ...string) string {
		return "SELECT " + strings.Join(inner, ", ") + currency + " AS currency, " + unit + " AS unit, " + strings.Join(sums, ", ") + " FROM " + from + " " + w.tail("")
	}
	lives := arm(of, "m.currency", lived, "1 AS meters", "m.end_estimated AS estimated", "m.closed_at / 1000 - m.opened_at / 1000 AS life", "0 AS paused",
		"0 AS wallet", "0 AS own_key", "0 AS own_place", "0 AS high", "0 AS low")
	paused := arm(of+" JOIN meter_segments s ON s.meter_id = m.id AND s.mode = '"+string(Paused)+"'", "m.currency", lived,
		"0", "0", "0", "s.ended_at / 1000 - s.started_at / 1000", "0", "0", "0", "0", "0")
	charges := arm("meters m JOIN charges c ON c.meter_id = m.id", "c.currency", charged, "0", "0", "0", "0",
		"CASE WHEN c.memo = '' THEN c.amount ELSE 0 END",
		"CASE WHEN c.memo LIKE '"+AccountBYOK+":%' THEN c.amount ELSE 0 END",
		"CASE WHEN c.memo <> '' AND c.memo NOT LIKE '"+AccountBYOK+":%' THEN c.amount ELSE 0 END",
		fmt.Sprintf("c.quantity / %d", quantityPart), fmt.Sprintf("c.quantity %% %d", quantityPart))
	var sums []string
	for _, c := range []string{"meters", "estimated", "life", "paused", "wallet", "own_key", "own_place", "high", "low"} {
		sums = append(sums, "CAST(SUM("+c+") AS BIGINT)")
	}
	stmt := "SELECT " + group + ", " + strings.Join(sums, ", ") + " FROM (" + lives + " UNION ALL " + paused + " UNION ALL " + charges + ") u GROUP BY " + group + " ORDER BY " + group
	return stmt, slices.Concat(lived.args, lived.args, charged.args)
}
