package engine_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A quote dials nothing unless it is told to ask: then a place's own estimate
// stands beside ours, at the same prices and for the same time.
func TestOnlyAQuoteThatAsksDials(t *testing.T) {
	t.Parallel()
	var asked time.Duration
	cpu := func(n int64) func(time.Duration) (extensions.Usage, error) {
		return func(d time.Duration) (extensions.Usage, error) {
			asked = d
			return extensions.Usage{Running: d, CPUMillis: &n}, nil
		}
	}
	g := &gauge{}
	b := newGauged(t, g)
	quote := func(o engine.QuoteOptions) engine.Quoted {
		t.Helper()
		o.History = true
		q, err := b.Quote(t.Context(), engine.Request{Profile: "profile.gauge", TTL: "2h"}, o)
		if err != nil {
			t.Fatal(told(err))
		}
		return q
	}
	if q := quote(engine.QuoteOptions{}); len(q.Foretold) > 0 {
		t.Errorf("unasked: %+v", q.Foretold)
	}
	if _, err := b.Plan(t.Context(), engine.Request{Profile: "profile.gauge"}); err != nil {
		t.Error(told(err))
	}
	if calls := g.told(); len(calls) > 0 {
		t.Fatalf("a quote and a plan dialled: %v", calls)
	}
	for name, c := range map[string]struct {
		expect             time.Duration
		says               func(time.Duration) (extensions.Usage, error)
		theirs, ours, more string
		why                string
		dialled            time.Duration
	}{
		"less":       {says: cpu(600_000), theirs: "60.00", ours: "1440.00", more: "-1380.00", dialled: 2 * time.Hour},
		"for a time": {expect: time.Minute, says: cpu(120_000), theirs: "12.00", ours: "12.00", more: "0.00", dialled: time.Minute},
		"nothing of CPU": {says: func(d time.Duration) (extensions.Usage, error) { return extensions.Usage{Running: d}, nil },
			theirs: "1440.00", ours: "1440.00", more: "0.00"},
		"impossible": {says: cpu(math.MaxInt64), theirs: "1440.00", ours: "1440.00", more: "0.00", why: "not believed: CPU"},
		"negative":   {says: cpu(-1), theirs: "1440.00", ours: "1440.00", more: "0.00", why: "it is negative"},
		"for a century": {says: func(time.Duration) (extensions.Usage, error) {
			return extensions.Usage{Running: 876_000 * time.Hour}, nil
		}, ours: "1440.00", why: "impossible within"},
		"no answer": {says: func(time.Duration) (extensions.Usage, error) {
			return extensions.Usage{}, extensions.Errorf(extensions.KindUnreachable, "nobody answers")
		}, ours: "1440.00", why: "nobody answers"},
	} {
		asked, g.estimate = 0, c.says
		q := quote(engine.QuoteOptions{Ask: true, Expected: c.expect})
		if len(q.Foretold) != 1 {
			t.Fatalf("%s: %+v", name, q.Foretold)
		}
		f := q.Foretold[0]
		if f.Extension != "ext.gauge" || f.Theirs != c.theirs || f.Ours != c.ours || f.More != c.more || f.Currency != "USD" ||
			(f.Why == "") != (c.why == "") || !strings.Contains(f.Why, c.why) || c.dialled > 0 && asked != c.dialled {
			t.Errorf("%s: %+v, asked for %s", name, f, asked)
		}
		if c.ours != q.Estimate.Candidates[0].Expected {
			t.Errorf("%s: ours is %s, the quote expects %s", name, f.Ours, q.Estimate.Candidates[0].Expected)
		}
	}
	if calls := strings.Join(g.told(), " "); strings.Count(calls, "open") != 1 || strings.Contains(calls, "usage") {
		t.Errorf("asked: %s", calls)
	}
	if n, _, err := verifyLedger(t.Context(), b.Engine); err != nil || n != 0 {
		t.Errorf("quotes wrote %d events, %s", n, told(err))
	}
}

// A vendor that nobody configured is never asked, even where a profile names it.
func TestAVendorThatIsNotConfiguredIsNotAsked(t *testing.T) {
	t.Parallel()
	g := &gauge{}
	x := g.extension().(*hooked)
	says := x.says
	x.says = func(d *extensions.Descriptor) {
		says(d)
		d.NamedOnly = false
	}
	b := newGauged(t, g)
	e := b.reopen(func(b *bench) { b.Extensions = append(all(), x) })
	q, err := e.Quote(t.Context(), engine.Request{Profile: "profile.gauge"}, engine.QuoteOptions{Ask: true})
	if err != nil || len(q.Foretold) != 1 || q.Foretold[0].Theirs != "" || !strings.Contains(q.Foretold[0].Why, "not configured") {
		t.Errorf("%+v, %s", q.Foretold, told(err))
	}
	if calls := g.told(); len(calls) > 0 {
		t.Errorf("dialled: %v", calls)
	}
}
