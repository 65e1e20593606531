package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// priced is another process, with a price book of the stub vendor.
func (b *bench) priced(book string) *engine.Engine {
	b.t.Helper()
	return b.reopen(onFiles(map[string]string{"prices/mine.yaml": book}))
}

const stubBook = `
id: prices.mine
extension: ext.saas-stub
version: "1"
as_of: "2026-08-01"
valid_until: "2036-08-01"
source: a test
currency: USD
confidence: exact
billing: wall-clock
components:
  - { component: sandbox, unit: sandbox-hour, price: "0.40" }
`

func TestAPriceThatRoseSinceThePlanIsRefusedBeforeAnythingExists(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "2h", MaxCost: "1.00 USD"}
	if p, err := b.priced(stubBook).Plan(ctx, req); err != nil || p.Estimate.Maximum != "0.80" {
		t.Fatalf("planned %+v, %v", p.Estimate, err)
	}
	tight := req
	tight.MaxCost = "0.80 USD"
	if _, err := b.priced(stubBook).Plan(ctx, tight); err != nil {
		t.Errorf("exactly as much as it may cost: %v", err)
	}
	tight.MaxCost = "0.799999999 USD"
	if _, err := b.priced(stubBook).Plan(ctx, tight); err == nil ||
		!strings.Contains(err.Error(), "0.000000001 USD above max_cost 0.799999999 USD") {
		t.Errorf("the least above it: %v", err)
	}
	dearer := b.priced(strings.Replace(stubBook, "0.40", "0.60", 1))
	_, err := dearer.Create(ctx, req, func(engine.Sandbox) { t.Error("it was begun") }, nil)
	if !extensions.IsKind(err, extensions.KindInvalid) || extensions.FieldOf(err) != "max_cost" {
		t.Fatalf("created: %v", err)
	}
	for _, part := range []string{"costs up to 1.20 USD for a ttl of 2h, 0.20 USD above max_cost 1.00 USD",
		"sandbox   2 sandbox-hour x 0.60 USD = 1.20 USD", "sum       1.20 USD"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	if rows := b.rows(); len(rows) != 0 {
		t.Errorf("recorded all the same: %+v", rows)
	}
}

func TestMaxCostNeedsAPriceThatIsKnown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct{ from, to, says string }{
		"a price nobody knows": {`price: "0.40"`, `confidence: unknown`,
			"the cost for a ttl of 2h is unknown, so it may exceed max_cost 1.00 USD (the price of sandbox"},
		"a size nobody gave":     {`component: sandbox, unit: sandbox-hour`, `component: disk, unit: disk-gib-hour`, "the amount of disk"},
		"another currency":       {"USD", "EUR", "does not convert currencies"},
		"a number out of bounds": {`"0.40"`, `"9000000"`, "costs up to 18000000.00 USD"},
	} {
		e := b.priced(strings.Replace(stubBook, c.from, c.to, 1))
		_, err := e.Plan(context.Background(), engine.Request{Profile: "profile.stub", TTL: "2h", MaxCost: "1.00 USD"})
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), c.says) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, extensions.RemedyOf(err))
		}
	}
}

func TestAPriceThatOverflowsNamesItsFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.priced(strings.Replace(stubBook, `component: sandbox, unit: sandbox-hour, price: "0.40"`,
		`component: memory, unit: gib-second, price: "9000000"`, 1))
	_, err := e.Plan(context.Background(), engine.Request{Profile: "profile.stub", TTL: "2h"})
	if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), "mine.yaml:5") ||
		!strings.Contains(err.Error(), "is too large") || !strings.Contains(err.Error(), "viability.price") {
		t.Errorf("%v", err)
	}
}

func TestOldPricesAreRefusedWhereAWalletPays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	e := b.priced(strings.NewReplacer(`"2026-08-01"`, `"2019-08-01"`, `"2036-08-01"`, `"2020-08-01"`).Replace(stubBook))
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "2h"}
	_, planned := e.Plan(ctx, req)
	_, created := e.Create(ctx, req, nil, nil)
	for _, err := range []error{planned, created} {
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "mine.yaml:5") ||
			!strings.Contains(err.Error(), "2020-08-01") {
			t.Errorf("%v", err)
		}
	}
	req.Billing = "byok"
	p, err := e.Plan(ctx, req)
	if err != nil || !slices.ContainsFunc(p.Notices, func(n engine.Notice) bool { return strings.Contains(n.Detail, "mine.yaml:5") }) {
		t.Errorf("with one's own key it is only told: %v, %v", p.Notices, err)
	}
}

// With the user's own key the wallet pays by an old price only what is a share
// of it.
func TestAnOldPriceIsRefusedWhereTheFeeIsAShareOfIt(t *testing.T) {
	t.Parallel()
	old := strings.NewReplacer(`"2026-08-01"`, `"2019-08-01"`, `"2036-08-01"`, `"2020-08-01"`).Replace(stubBook)
	for fee, refused := range map[string]bool{`share: "0.05"`: true, `per_hour: "0.01 USD"`: false,
		`per_hour: "0.01 USD", share: "0.05", billing: platform`: false} {
		billing := "byok"
		if strings.Contains(fee, "platform") { // the request says byok, so that this one is not taken
			billing = "platform"
		}
		b := newBench(t, onFiles(map[string]string{"prices/mine.yaml": old,
			"extensions/fee.yaml": "id: ext.saas-stub\nhandler: saas-stub\nbilling: " + billing + "\nfee: { " + fee + " }\n"}))
		_, err := b.Plan(context.Background(), engine.Request{Profile: "profile.stub", TTL: "2h", Billing: "byok"})
		if stale := err != nil && strings.Contains(err.Error(), "is stale"); stale != refused {
			t.Errorf("fee %s: %v", fee, err)
		}
	}
}

func TestAQuoteKnowsWhatAPlanMustNot(t *testing.T) {
	t.Parallel()
	var passed time.Duration // by the clocks, ours and the vendor's
	b := newBench(t, ahead(func() time.Duration { return passed }), onFiles(map[string]string{
		"prices/mine.yaml": strings.Replace(stubBook, `"0.40"`, `"0.40", increment: 1h`, 1)})) // nobody lives to the millisecond
	ctx := context.Background()
	req := engine.Request{Profile: "profile.stub", TTL: "10h"}
	before, err := b.Plan(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	for _, ran := range []time.Duration{30 * time.Minute, 150 * time.Minute, 90 * time.Minute} {
		s := b.create(engine.Request{Profile: "profile.stub", TTL: "10h"})
		if err := vendor.At(b.StateDir + "/saas-stub").Advance(ran); err != nil {
			t.Fatal(err)
		}
		passed += ran
		b.end(s)
	}
	after, err := b.Plan(ctx, req)
	if err != nil || after.Estimate.Candidates[0].Expected != before.Estimate.Candidates[0].Expected ||
		after.Estimate.Candidates[0].P95 != "" {
		t.Errorf("a plan changes with the past: %+v, %v", after.Estimate.Candidates[0], err)
	}
	for name, c := range map[string]struct {
		o             engine.QuoteOptions
		expected, p95 string
		past          int64
	}{
		"history":           {engine.QuoteOptions{History: true}, "0.80", "1.20", 3},
		"a duration":        {engine.QuoteOptions{Expected: 30 * time.Minute}, "0.40", "", 0},
		"duration, history": {engine.QuoteOptions{Expected: 30 * time.Minute, History: true}, "0.40", "1.20", 3},
		"neither":           {engine.QuoteOptions{}, "4.00", "", 0},
	} {
		q, err := b.Quote(ctx, req, c.o)
		if err != nil {
			t.Fatal(err)
		}
		first := q.Estimate.Candidates[0]
		if first.Expected != c.expected || first.P95 != c.p95 || first.Maximum != "4.00" || q.Past != c.past {
			t.Errorf("%s: expected %s, p95 %q, maximum %s of %d", name, first.Expected, first.P95, first.Maximum, q.Past)
		}
	}
	if _, err := b.Quote(ctx, req, engine.QuoteOptions{Expected: -1}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a negative duration: %v", err)
	}
}

func TestAQuoteTellsWhatWalletAndBudgetsLeave(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	e := b.priced(stubBook)
	req := engine.Request{Profile: "profile.stub", TTL: "2h"}
	if q, err := e.Quote(ctx, req, engine.QuoteOptions{History: true}); err != nil || len(q.Funds) != 0 {
		t.Fatalf("without wallets there is nothing to tell: %+v, %v", q.Funds, err)
	}
	b.grant(700_000_000)
	for _, budget := range []ledger.Budget{
		{Account: "acme/web", Name: "month", Currency: "USD", Limit: 5e9, Hard: true, Period: "month"},
		{Account: "acme/other", Name: "theirs", Currency: "USD", Limit: 5e9},
		{Account: "acme", Name: "euros", Currency: "EUR", Limit: 5e9},
	} {
		if _, err := b.book().PutBudget(ctx, budget); err != nil {
			t.Fatal(err)
		}
	}
	q, err := b.priced(stubBook).Quote(ctx, req, engine.QuoteOptions{History: true})
	want := []engine.Funds{
		{Limit: "wallet of acme", Currency: "USD", Available: "0.70", Needed: "0.80", Hard: true},
		{Limit: "budget month of acme/web", Currency: "USD", Available: "5.00", Needed: "0.80", Hard: true, Enough: true},
	}
	if err != nil || !slices.Equal(q.Funds, want) {
		t.Errorf("got %+v, %v", q.Funds, err)
	}
}
