package sqlstore

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// day is a day in microseconds.
const day = int64(24 * time.Hour / time.Microsecond)

// quantityPart splits quantities in two for the database, since their sums may overflow.
const quantityPart = 1_000_000_000

// Usage implements Ledger.
func (s *store) Usage(ctx context.Context, f ledger.UsageFilter, by ...bank.Dimension) ([]bank.UsageRow, error) {
	for _, d := range by {
		if !slices.Contains(bank.Dimensions(), d) {
			return nil, fault.Errorf(extensions.KindInvalid, "usage cannot be grouped by %q", d).WithRemedy("use one of %s",
				join(bank.Dimensions()))
		}
	}
	if s.reader == nil {
		return nil, nil
	}
	stmt, args := usageStatementOf(f, by)
	var out []bank.UsageRow
	err := s.ask(ctx, func() error {
		out = nil
		return query(ctx, s, s.reader, stmt, args, func(scan func(...any) error) error {
			var r bank.UsageRow
			var high, low int64
			fs := usageKeys(&r, by)
			fs = append(fs, text("currency", &r.Currency), text("unit", &r.Unit), number("meters", &r.Meters), number("estimated", &r.Estimated))
			fs = append(append(fs, amounts(&r.Sums)...), number("high", &high), number("low", &low))
			if err := scan(targets(fs)...); err != nil {
				return err
			}
			if slices.Contains(by, bank.ByComponent) {
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

// usageKeys returns the fields that a row is grouped by.
func usageKeys(r *bank.UsageRow, by []bank.Dimension) []field {
	var out []field
	for _, d := range by {
		switch d {
		case bank.ByAccount:
			out = append(out, text("m.account", &r.Account))
		case bank.ByProfile:
			out = append(out, text("m.profile", &r.Profile))
		case bank.ByExtension:
			out = append(out, text("m.extension", &r.Extension))
		case bank.ByHost:
			out = append(out, text("m.host", &r.Host))
		case bank.ByActor:
			out = append(out, text("m.actor", &r.Actor))
		case bank.ByHarness:
			out = append(out, text("m.harness", &r.Harness))
		case bank.ByRunID:
			out = append(out, text("m.run_id", &r.RunID))
		case bank.BySandbox:
			out = append(out, text("m.sandbox_id", &r.SandboxID), text("m.name", &r.Name))
		case bank.ByDay:
			out = append(out, stamp(fmt.Sprintf("m.closed_at / %d * %d", day, day), &r.Day))
		case bank.ByComponent:
			out = append(out, text("c.component", &r.Component))
		}
	}
	return out
}

// usageStatement sums values from one or several tables.
type usageStatement struct {
	keys, group []string
	arms        []string
	args        []any
}

// usageValues is the number of values per arm.
const usageValues = 13

// arm adds a source. values are: meters, estimated ends, running and paused time, the three amounts, lives
// with unknown amounts, the three counts of unknown amounts, and both parts of the quantity.
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
	return "SELECT " + strings.Join(columns, ", ") + " FROM (" + strings.Join(u.arms, " UNION ALL ") + ") u GROUP BY " + group + " ORDER BY " +
		group
}

// A meter of a snapshot counts no life.
const (
	aLife         = "(CASE WHEN m.snapshot_id = '' THEN 1 ELSE 0 END)"
	estimatedLife = "(CASE WHEN m.snapshot_id = '' THEN m.end_estimated ELSE 0 END)"
)

const chargesOfMeters = "meters m JOIN charges c ON c.meter_id = m.id"

// byPayer returns a value of a charge as three columns, one per kind of payer.
func byPayer(value string) []string {
	return []string{
		"CASE WHEN c.memo = '' THEN " + value + " ELSE 0 END",
		"CASE WHEN c.memo LIKE '" + bank.AccountBYOK + ":%' THEN " + value + " ELSE 0 END",
		"CASE WHEN c.memo <> '' AND c.memo NOT LIKE '" + bank.AccountBYOK + ":%' THEN " + value + " ELSE 0 END",
	}
}

// chargeAmounts are amounts; chargeUnknown counts the unknown ones.
var (
	chargeAmounts = byPayer("c.amount")
	chargeUnknown = byPayer("CASE WHEN c.confidence = 'unknown' THEN 1 ELSE 0 END")
)

// firstOf is 1 for the first charge of its meter among those that meet the condition on c and d, else 0.
func firstOf(like *where) string {
	return "CASE WHEN EXISTS (SELECT 1 FROM charges d " +
		like.tail("AND d.meter_id = c.meter_id AND (d.component, d.segment) < (c.component, c.segment)") + ") THEN 0 ELSE 1 END"
}

// firstUnknown is firstOf among charges of unknown amount.
func firstUnknown(like *where) string {
	like.and("d.confidence = 'unknown'")
	return "CASE WHEN c.confidence <> 'unknown' THEN 0 ELSE " + firstOf(like) + " END"
}

// usageStatementOf returns the statement and its arguments. Without components it reads the sums that
// meters keep, and the few charges outside them; with components, it reads the charges.
func usageStatementOf(f ledger.UsageFilter, by []bank.Dimension) (string, []any) {
	var u usageStatement
	for i, k := range usageKeys(new(bank.UsageRow), by) {
		u.group = append(u.group, fmt.Sprintf("k%d", i))
		u.keys = append(u.keys, k.name+" AS "+u.group[i])
	}
	u.group = append(u.group, "cur", "un")
	if slices.Contains(by, bank.ByComponent) || f.Component != "" {
		chargeUsage(f, &u, slices.Contains(by, bank.ByComponent))
		return u.text(), u.args
	}
	u.arm("meters m", "m.currency", "''", metersOf(f, false), aLife, estimatedLife, "m.running_ms", "m.paused_ms", "m.wallet", "m.own_key",
		"m.own_place",
		"m.unpriced", "m.wallet_unknown", "m.own_key_unknown", "m.own_place_unknown", "0", "0")
	others := metersOf(f, false)
	others.and("m.mixed = 1 AND c.currency <> m.currency")
	u.arm(chargesOfMeters, "c.currency", "''", others, slices.Concat([]string{"0", "0", "0", "0"}, chargeAmounts,
		[]string{firstUnknown(&where{parts: []string{"d.currency = c.currency"}})}, chargeUnknown, []string{"0", "0"})...)
	return u.text(), u.args
}

// chargeUsage reads charges. The first charge of a component, or of all selected ones, counts the life.
func chargeUsage(f ledger.UsageFilter, u *usageStatement, byComponent bool) {
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
	values := slices.Concat([]string{aLife + " * " + firstOf(lives), "m.end_estimated", "m.running_ms", "m.paused_ms"}, chargeAmounts,
		[]string{firstUnknown(unpriced)}, chargeUnknown,
		[]string{fmt.Sprintf("c.quantity / %d", quantityPart), fmt.Sprintf("c.quantity %% %d", quantityPart)})
	u.args = slices.Concat(u.args, lives.args, unpriced.args)
	w := metersOf(f, false)
	w.component("c.", f.Component)
	u.arm(chargesOfMeters, "c.currency", unit, w, values...)
	// The no-op limit makes the database decide once per charge which is first, instead of once per sum.
	columns := slices.Concat(u.group, []string{"v0", "v0 * v1 AS v1", "v0 * v2 AS v2", "v0 * v3 AS v3"})
	for i := 4; i < usageValues; i++ {
		columns = append(columns, fmt.Sprintf("v%d", i))
	}
	u.arms[0] = "SELECT " + strings.Join(columns, ", ") + " FROM (" + u.arms[0] + fmt.Sprintf(" LIMIT %d) x", int64(math.MaxInt64))
}
