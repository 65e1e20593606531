package ledgertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func usage(t *testing.T, address NewAddress) {
	t.Run("an empty ledger has none", func(t *testing.T) { t.Parallel(); noUsage(t, fresh(t, address)) })
	t.Run("every column of a charge", func(t *testing.T) { t.Parallel(); chargeColumns(t, fresh(t, address)) })
	t.Run("more charges than are read at a time", func(t *testing.T) { t.Parallel(); manyCharges(t, fresh(t, address)) })
	t.Run("sums are those of the charges", func(t *testing.T) { t.Parallel(); usageSums(t, fresh(t, address)) })
	t.Run("prices that nobody told", func(t *testing.T) { t.Parallel(); unpricedLives(t, fresh(t, address)) })
	t.Run("a key is for one grant", func(t *testing.T) { t.Parallel(); grantKeys(t, fresh(t, address)) })
	t.Run("budgets that were removed", func(t *testing.T) { t.Parallel(); removedBudgets(t, fresh(t, address)) })
	t.Run("sums that are too large", func(t *testing.T) { t.Parallel(); tooMuchUsage(t, fresh(t, address)) })
}

func noUsage(t *testing.T, l *ledger.Ledger) {
	ctx := context.Background()
	if rows := must(l.Usage(ctx, ledger.UsageFilter{}, bank.Dimensions()...))(t); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
	if cs := chargesOf(t, l, ledger.UsageFilter{}); len(cs) != 0 {
		t.Errorf("%+v", cs)
	}
	if _, err := l.Usage(ctx, ledger.UsageFilter{}, "colour"); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("by something unknown: %v", err)
	}
}

func chargesOf(t testing.TB, l *ledger.Ledger, f ledger.UsageFilter) (out []ledger.ChargeRow) {
	t.Helper()
	err := l.EachCharge(context.Background(), f, func(c ledger.ChargeRow) error {
		out = append(out, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const someRates = `{"v":1,"basis":"price-book","book":"prices.one","book_version":"2","extension":"ext.x","as_of":"2026-01-02",` +
	`"source":"https://x.test","currency":"EUR",` +
	`"confidence":"exact","region":"eu","memo":true,"sizes":{},` +
	`"prices":[{"component":"sandbox","unit":"sandbox-hour","price":"0.10","confidence":"exact"}]}`

// metered is the usage of one test life: its mode changes after the given minutes.
type metered struct {
	id extensions.ID

	account, name, profile, extension, host, currency string
	consumer                                          [3]string
	start                                             time.Time
	minutes                                           []int // running, paused, running …
	charges                                           []ledger.Charge
	open, estimated                                   bool
}

func (m metered) live(t testing.TB, l *ledger.Ledger) ledger.Sandbox {
	t.Helper()
	ctx := context.Background()
	b := want(newID(t), holderOf(t, l), m.name)
	b.Account, b.Profile, b.Extension, b.Host = m.account, m.profile, m.extension, m.host
	b.Request = must(json.Marshal(map[string]any{"consumer": map[string]string{"actor": m.consumer[0], "harness": m.consumer[1],
		"run_id": m.consumer[2]}}))(t)
	s := must(l.Begin(ctx, b))(t)
	s = must(l.Apply(ctx, provisioning(s)))(t)
	c := ready(s)
	c.Meter.Open.At, c.Meter.Open.Currency, c.Meter.Open.Rates = m.start, m.currency, json.RawMessage(someRates)
	s = must(l.Apply(ctx, c))(t)
	at := m.start.Add(time.Duration(m.minutes[0]) * time.Minute)
	for i, n := range m.minutes[1:] {
		mode := []ledger.Mode{ledger.Paused, ledger.Running}[i%2]
		s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, fmt.Sprint("switch", i)),
			Meter: ledger.MeterOps{Switch: &bank.MeterSwitch{At: at, Mode: mode}}}))(t)
		at = at.Add(time.Duration(n) * time.Minute)
	}
	if m.open {
		return s
	}
	s = must(l.Apply(ctx, destroying(s, holderOf(t, l))))(t)
	c = destroyed(s)
	c.Meter.Close = &ledger.MeterClose{At: at, Source: "ours", Estimated: m.estimated}
	return must(l.Apply(ctx, charging(c, m.charges...)))(t)
}

func charge(segment int64, component, memo string, amount int64) ledger.Charge {
	return ledger.Charge{Segment: segment, Component: component, Quantity: amount * 7, Unit: "u-" + component, UnitPrice: 3, Amount: amount,
		Currency: "EUR", Memo: memo, Confidence: "exact"}
}

func chargeColumns(t *testing.T, l *ledger.Ledger) {
	cs := []ledger.Charge{charge(0, "creation", "", 1), charge(1, "vcpu", "byok_memo:ext.x", 2),
		charge(2, "vcpu:paused", "byok_memo:ext.x", 3)}
	m := metered{account: "acme/web", name: "one", profile: "profile.p", extension: "ext.x", host: "h", currency: "EUR",
		consumer: [3]string{"agt", "harness", "run-1"}, start: Start, minutes: []int{1, 2, 3, 4, 5}, charges: cs, estimated: true}
	s := m.live(t, l)
	at := func(minutes int) time.Time { return Start.Add(time.Duration(minutes) * time.Minute) }
	rows := chargesOf(t, l, ledger.UsageFilter{})
	if len(rows) != 3 {
		t.Fatalf("%+v", rows)
	}
	if p := rows[0].Prices; p.Book != "prices.one" || p.BookVersion != "2" || p.AsOf != "2026-01-02" || p.Source != "https://x.test" ||
		p.Region != "eu" || p.Prices != nil {
		t.Errorf("prices: %+v", p)
	}
	for i, w := range []struct {
		mode       ledger.Mode
		start, end time.Time
	}{{"", at(0), at(15)}, {ledger.Running, at(0), at(15)}, {ledger.Paused, at(1), at(10)}} {
		cs[i].MeterID = string(s.ID) + "/1"
		wanted := ledger.ChargeRow{Charge: cs[i], SandboxID: s.ID, Generation: 1, Mode: w.mode, StartedAt: w.start, EndedAt: w.end,
			MeterStart: at(0), MeterEnd: at(15),
			StartSource: "backend", EndSource: "ours", EndEstimated: true, Prices: rows[i].Prices,
			For: bank.Attribution{Account: "acme/web", Name: "one", Profile: "profile.p", ProfileVersion: "1.0.0", Extension: "ext.x", Host: "h",
				Actor: "agt", Harness: "harness", RunID: "run-1"}}
		if d := gocmp.Diff(wanted, rows[i]); d != "" {
			t.Errorf("charge %d (-want +got):\n%s", i, d)
		}
	}
	stop := errors.New("enough")
	n := 0
	err := l.EachCharge(context.Background(), ledger.UsageFilter{}, func(ledger.ChargeRow) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("an error ends the reading: %d, %v", n, err)
	}
}

// manyCharges are more than a page, many of them with the same end.
func manyCharges(t *testing.T, l *ledger.Ledger) {
	const lives = 520
	for i := range lives {
		m := metered{account: Account, name: fmt.Sprint("n", i), profile: "p", extension: "e", currency: "EUR", start: Start,
			minutes: []int{i / 400}, open: i%2 == 1,
			charges: []ledger.Charge{charge(1, "b", "", 1), charge(0, "a", "", 1)}}
		if i < lives/2 {
			m.account = "acme/other"
		}
		m.live(t, l)
	}
	for account, n := range map[string]int{"": lives, "acme": lives, "acme/other": lives / 2, "acm": 0, "acme/othe": 0} {
		rows := chargesOf(t, l, ledger.UsageFilter{Account: account})
		seen := map[string]bool{}
		for _, r := range rows {
			seen[r.MeterID+r.Component] = true
		}
		sorted := slices.IsSortedFunc(rows, func(a, b ledger.ChargeRow) int {
			return cmp.Or(a.MeterEnd.Compare(b.MeterEnd), strings.Compare(a.MeterID, b.MeterID), cmp.Compare(a.Segment, b.Segment))
		})
		open := 0
		err := l.EachOpenMeter(context.Background(), ledger.UsageFilter{Account: account}, func(m ledger.Meter) error {
			if !m.Open() || len(m.Segments) != 1 {
				t.Errorf("%+v", m)
			}
			open++
			return nil
		})
		if err != nil || len(rows) != n || len(seen) != n || !sorted || open != n/2 {
			t.Errorf("%q: %d charges, %d different, in order: %v, %d open meters, %v; want %d", account, len(rows), len(seen), sorted, open, err, n)
		}
	}
}

func tooMuchUsage(t *testing.T, l *ledger.Ledger) {
	const huge = 1 << 62
	for i := range 3 {
		c := charge(0, "a", "", huge)
		c.Quantity = huge
		metered{account: Account, name: fmt.Sprint("n", i), profile: "p", currency: "EUR", start: Start, minutes: []int{1},
			charges: []ledger.Charge{c}}.live(t, l)
		rows, err := l.Usage(context.Background(), ledger.UsageFilter{}, ledger.ByComponent)
		if i == 0 && (err != nil || len(rows) != 1 || rows[0].Wallet != huge || rows[0].Quantity.Int64() != huge) {
			t.Errorf("one: %+v, %v", rows, err)
		}
		if i == 2 && err == nil {
			t.Errorf("a sum that does not fit was given: %+v", rows)
		}
	}
}

// usageSums compares the database's sums with plain sums of the same charges.
func usageSums(t *testing.T, l *ledger.Ledger) {
	lives := 0
	org := 0
	rapid.Check(t, func(rt *rapid.T) {
		org++
		name := fmt.Sprintf("org%d", org)
		var all []metered
		for range rapid.IntRange(0, 4).Draw(rt, "lives") {
			m := drawMetered(rt, name)
			lives++
			m.name = fmt.Sprint("n", lives)
			m.id = m.live(t, l).ID
			all = append(all, m)
		}
		f := ledger.UsageFilter{Account: name}
		if rapid.Bool().Draw(rt, "bounded") {
			f.From = Start.AddDate(0, 0, rapid.IntRange(0, 2).Draw(rt, "from"))
			f.To = f.From.Add(time.Duration(rapid.IntRange(0, 72).Draw(rt, "hours")) * time.Hour)
		}
		pick := func(label string, values ...string) string {
			return rapid.SampledFrom(append(make([]string, 2*len(values)), values...)).Draw(rt, label)
		}
		if ws := pick("account", "w1", "w2"); ws != "" {
			f.Account += "/" + ws
		}
		f.Profile, f.Host, f.Component, f.Actor = pick("of profile", "p1", "p2"), pick("of host", "h1"), pick("of component", "vcpu",
			"vcpu:paused"), pick("of actor", "agt")
		by := slices.DeleteFunc(rapid.Permutation(bank.Dimensions()).Draw(rt, "by"), func(d ledger.Dimension) bool {
			return rapid.IntRange(0, 2).Draw(rt, string(d)) > 0
		})
		got := must(l.Usage(context.Background(), f, by...))(t)
		wanted := fold(all, f, by)
		order := func(rows []ledger.UsageRow) []string {
			var out []string
			for _, r := range rows {
				out = append(out, fmt.Sprintf("%+v %v", r, r.Quantity))
			}
			slices.Sort(out)
			return out
		}
		for _, rows := range [][]ledger.UsageRow{got, wanted} {
			for i := range rows { // compared as text
				if rows[i].Quantity == nil {
					rows[i].Quantity = new(big.Int)
				}
			}
		}
		if d := gocmp.Diff(order(wanted), order(got)); d != "" {
			rt.Fatalf("%+v by %v (-want +got):\n%s", f, by, d)
		}
	})
}

func drawMetered(rt *rapid.T, org string) metered {
	of := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(rt, label) }
	m := metered{account: org + "/" + of("workspace", "w1", "w2"), profile: of("profile", "p1", "p2"), extension: of("extension", "e1", "e2"),
		host:      of("host", "", "h1"),
		currency:  of("currency", "EUR", "USD", ""),
		consumer:  [3]string{of("actor", "", "agt"), of("harness", "", "h"), of("run", "", "r1", "r2")},
		start:     Start.Add(time.Duration(rapid.IntRange(0, 72*60).Draw(rt, "start")) * time.Minute),
		minutes:   rapid.SliceOfN(rapid.IntRange(0, 100), 1, 4).Draw(rt, "minutes"),
		open:      rapid.IntRange(0, 5).Draw(rt, "open") == 0,
		estimated: rapid.Bool().Draw(rt, "estimated")}
	for _, component := range []string{"creation", "vcpu", "vcpu:paused", "vcpu2"} {
		if rapid.Bool().Draw(rt, component) {
			continue
		}
		c := charge(rapid.Int64Range(0, int64(len(m.minutes))).Draw(rt, "segment"), component,
			of("memo", "", "byok_memo:e1", "infra_memo:e1", "idle_memo:x"), rapid.Int64Range(0, 1e15).Draw(rt, "amount"))
		c.Currency = m.currency
		if rapid.IntRange(0, 5).Draw(rt, "other currency") == 0 {
			c.Currency = "GBP"
		}
		c.Quantity = rapid.Int64Range(0, 1e18).Draw(rt, "quantity")
		if c.Currency == "" || rapid.IntRange(0, 2).Draw(rt, "not known") == 0 {
			c.UnitPrice, c.Amount, c.Confidence = 0, 0, "unknown"
		}
		m.charges = append(m.charges, c)
	}
	return m
}
