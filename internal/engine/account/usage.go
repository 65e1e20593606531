package account

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// UsageQuery selects the contents of a report. Empty fields exclude nothing.
type UsageQuery struct {
	WholeOrg bool // all workspaces of the account's org
	// From and To bound the end of settled usage, From <= end < To: a day (2026-01-31), a month (2026-01),
	// an RFC 3339 time, all in UTC, or a duration ago (7d). "" means the start of this month, and now.
	From, To string
	By       []string // see UsageDimensions
	Sandbox  extensions.ID
	Profile  string // id
	// Extension is a binding's id, Host a name, Component one such as "vcpu".
	Extension, Host, Component string
	Actor, Harness, RunID      string
}

// UsageReport is the usage by consumer and place, and who pays.
type UsageReport struct {
	Account  string // org/workspace, or the org
	From, To time.Time
	At       time.Time // when running usage was counted
	By       []string
	Settled  []UsageRow // ended in the period
	Running  []UsageRow // lives now; not settled, and in no period
	Totals   []UsageTotal
	Measured []LifeMeasured // of the running ones, if their places were asked
}

// LifeMeasured is the place's measure of one running sandbox.
type LifeMeasured struct {
	Sandbox extensions.ID
	Name    string
	bank.Measured
}

// Measure asks the places of running sandboxes for their own measures.
type Measure func(ctx context.Context, ids []extensions.ID) (map[extensions.ID]bank.Measured, error)

// UsageRow is one line. Fields that lines are not grouped by are empty.
type UsageRow struct {
	Account, Profile, Extension, Host string
	Actor, Harness, RunID             string
	Sandbox                           extensions.ID
	Name                              string // of the sandbox
	Day                               string // 2026-01-31; of the end, or today
	Component                         string
	UsageSums
	// Set when grouped by component: exact in quanta ("MiB x ms"), and in the price's unit ("gib-hour"),
	// rounded half up to six decimals.
	Quantity, Unit         string
	Consumed, ConsumedUnit string
}

// UsageTotal sums lines of one currency.
type UsageTotal struct {
	Running bool // not settled
	UsageSums
}

// UsageSums are sums in one currency, "" if there is no known price.
type UsageSums struct {
	Currency string
	// Lives counts meters: a re-created sandbox has several. When grouped by component, it counts those
	// charged for the component.
	Lives     int64
	Estimated int64 // those with an estimated end
	// Seconds of those lives, running and paused.
	RunningSeconds, PausedSeconds int64
	// Unpriced counts the lives with a charge of unknown price.
	Unpriced int64
	// Billed was taken from the wallet, or is owed. OwnKey is what the vendor bills the owner of the key;
	// OwnPlace is what the user's own hosts cost. Both only inform: no credit was taken.
	Billed, OwnKey, OwnPlace UsageAmount
}

// UsageAmount is a sum that may be partly unknown.
type UsageAmount struct {
	Sum     string // decimal; "" = not fully known
	AtLeast string // decimal: the known part; "" = none
}

// usageDimensions maps the words of a report to ledger dimensions.
var usageDimensions = []struct {
	word string
	by   []ledger.Dimension
}{
	{"account", []ledger.Dimension{ledger.ByAccount}},
	{"profile", []ledger.Dimension{ledger.ByProfile}},
	{"extension", []ledger.Dimension{ledger.ByExtension}},
	{"host", []ledger.Dimension{ledger.ByHost}},
	{"component", []ledger.Dimension{ledger.ByComponent}},
	{"consumer", []ledger.Dimension{ledger.ByActor, ledger.ByHarness, ledger.ByRunID}},
	{"actor", []ledger.Dimension{ledger.ByActor}},
	{"harness", []ledger.Dimension{ledger.ByHarness}},
	{"run", []ledger.Dimension{ledger.ByRunID}},
	{"day", []ledger.Dimension{ledger.ByDay}},
	{"sandbox", []ledger.Dimension{ledger.BySandbox}},
}

// UsageDimensions lists the words that a report may group by. "consumer" is actor, harness and run
// together.
func UsageDimensions() []string {
	var out []string
	for _, d := range usageDimensions {
		out = append(out, d.word)
	}
	return out
}

func dimensionsOf(words []string) (by []ledger.Dimension, err error) {
	for _, w := range words {
		i := slices.Index(UsageDimensions(), w)
		if i < 0 {
			return nil, extensions.AtField("by", extensions.Invalid("usage cannot be grouped by %q", "use "+strings.Join(UsageDimensions(), ", "),
				extensions.Clean(w, 80)))
		}
		for _, d := range usageDimensions[i].by {
			if !slices.Contains(by, d) {
				by = append(by, d)
			}
		}
	}
	return by, nil
}

// Usage reports on the engine's account. It writes nothing; a missing ledger has no usage. It prices running
// sandboxes by the result of measure; if measure is nil, it estimates them by time.
func (a *Account) Usage(ctx context.Context, q UsageQuery, measure Measure) (UsageReport, error) {
	now := a.books.Now().UTC().Truncate(time.Millisecond)
	r := UsageReport{Account: a.budgetAccount(q.WholeOrg), At: now, By: q.By}
	by, err := dimensionsOf(q.By)
	if err != nil {
		return r, err
	}
	if r.From, r.To, err = period(q.From, q.To, now); err != nil {
		return r, err
	}
	l, err := a.books.Reader(ctx)
	if err != nil {
		return r, err
	}
	f := ledger.UsageFilter{From: r.From, To: r.To, Account: r.Account, SandboxID: q.Sandbox, Profile: q.Profile, Extension: q.Extension,
		Host: q.Host, Component: q.Component, Actor: q.Actor, Harness: q.Harness, RunID: q.RunID}
	if q.To == "" {
		f.To = time.Time{} // another machine's clock may be ahead
	}
	settled, err := l.Usage(ctx, f, by...)
	if err != nil {
		return r, err
	}
	totals := settled
	if len(by) > 0 {
		if totals, err = l.Usage(ctx, f); err != nil {
			return r, err
		}
	}
	var measured map[extensions.ID]bank.Measured
	if measure != nil {
		if measured, err = r.measure(ctx, l, f, measure); err != nil {
			return r, err
		}
		r.At = a.books.Now().UTC().Truncate(time.Millisecond)
	}
	running, sum, err := accrual{measured: measured}.add(ctx, l, f, by, r.At)
	if err != nil {
		return r, err
	}
	for _, row := range settled {
		r.Settled = append(r.Settled, usageRow(row))
	}
	for _, row := range running {
		r.Running = append(r.Running, usageRow(row))
	}
	for _, row := range totals {
		r.Totals = append(r.Totals, UsageTotal{UsageSums: usageSums(row)})
	}
	for _, row := range sum {
		r.Totals = append(r.Totals, UsageTotal{Running: true, UsageSums: usageSums(row)})
	}
	return r, nil
}

// measure asks about all that the filter selects and that runs.
func (r *UsageReport) measure(ctx context.Context, l *ledger.Ledger, f ledger.UsageFilter,
	measure Measure) (map[extensions.ID]bank.Measured, error) {
	var ids []extensions.ID
	err := l.EachOpenMeter(ctx, f, func(m ledger.Meter) error {
		if m.SnapshotID != "" {
			return nil // nobody measures what is kept
		}
		ids = append(ids, m.SandboxID)
		r.Measured = append(r.Measured, LifeMeasured{Sandbox: m.SandboxID, Name: m.For.Name})
		return nil
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	got, err := measure(ctx, ids)
	for i := range r.Measured {
		r.Measured[i].Measured = got[r.Measured[i].Sandbox]
	}
	return got, err
}

func usageRow(r ledger.UsageRow) UsageRow {
	out := UsageRow{Account: r.Account, Profile: r.Profile, Extension: r.Extension, Host: r.Host, Actor: r.Actor, Harness: r.Harness,
		RunID:   r.RunID,
		Sandbox: r.SandboxID, Name: r.Name, Component: r.Component, UsageSums: usageSums(r)}
	if !r.Day.IsZero() {
		out.Day = r.Day.Format(time.DateOnly)
	}
	if r.Quantity != nil {
		out.Quantity, out.Unit = r.Quantity.String(), meter.QuantumOf(r.Unit)
		out.Consumed, out.ConsumedUnit = consumed(r.Quantity, r.Unit), r.Unit
	}
	return out
}

func consumed(quantity *big.Int, unit string) string {
	per, _, ok := meter.QuantaPerUnit(unit)
	if !ok {
		per = 1
	}
	text := new(big.Rat).SetFrac(quantity, big.NewInt(per)).FloatString(6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func usageSums(r ledger.UsageRow) UsageSums {
	amount := func(sum, unknown int64) (a UsageAmount) {
		if r.Currency == "" {
			return a
		}
		if a.AtLeast = nano(sum); unknown == 0 {
			a.Sum = a.AtLeast
		}
		return a
	}
	return UsageSums{Currency: r.Currency, Lives: r.Meters, Estimated: r.Estimated, RunningSeconds: r.Running / 1000,
		PausedSeconds: r.Paused / 1000,
		Unpriced:      r.Unpriced, Billed: amount(r.Wallet, r.WalletUnknown), OwnKey: amount(r.OwnKey, r.OwnKeyUnknown),
		OwnPlace: amount(r.OwnPlace, r.OwnPlaceUnknown)}
}

// period reads both bounds; see UsageQuery.
func period(from, to string, now time.Time) (start, end time.Time, err error) {
	if start, err = moment(cmp.Or(from, now.Format("2006-01")), now); err != nil {
		return start, end, extensions.AtField("from", err)
	}
	end = now
	if to != "" {
		if end, err = moment(to, now); err != nil {
			return start, end, extensions.AtField("to", err)
		}
	}
	if start.After(end) {
		return start, end, extensions.AtField("from",
			extensions.Invalid("the period starts at %s, after its end at %s", "set an earlier from or a later to", start.Format(time.RFC3339),
				end.Format(time.RFC3339)))
	}
	return start, end, nil
}

// CheckUsageTime checks the format of a bound of UsageQuery; "" is valid.
func CheckUsageTime(s string) error {
	_, err := moment(cmp.Or(s, "2026-01"), time.Now())
	return err
}

func moment(s string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, "2006-01", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 1970 {
			return t.UTC(), nil
		}
	}
	if d, err := profile.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, extensions.Invalid("%q is not a time",
		"write a day (2026-01-31), a month (2026-01), an RFC 3339 time, or how long ago (7d)", extensions.Clean(s, 80))
}
