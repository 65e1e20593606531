package engine_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// gauge is a vendor that bills active CPU, and measures what a test sets.
type gauge struct {
	mu       sync.Mutex
	cpu      *int64 // while it lives; nil = it does not answer
	atEnd    *int64 // in the report of the teardown; nil = no measure in it
	calls    []string
	estimate func(d time.Duration) (extensions.Usage, error)
}

func (g *gauge) set(cpu, atEnd *int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cpu, g.atEnd = cpu, atEnd
}

func (g *gauge) called(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, what)
}

// told returns what the vendor was asked, and forgets it.
func (g *gauge) told() (calls []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls, g.calls = g.calls, nil
	return calls
}

func (g *gauge) extension() extensions.Extension {
	return &hooked{handler: "gauge",
		says: func(d *extensions.Descriptor) {
			d.Capabilities.BillingModel, d.Capabilities.IdleCostModel = extensions.BillingActiveCPU, extensions.IdleZero
		},
		before: func(context.Context) error { g.called("open"); return nil },
		does: func(c *calls, _ extensions.Config) {
			usage, teardown := c.Usage, c.Teardown
			gone := map[string]bool{}
			c.Usage = func(ctx context.Context, h extensions.Handle) (extensions.Usage, error) {
				g.called("usage")
				g.mu.Lock()
				defer g.mu.Unlock()
				if gone[h.Ref] || g.cpu == nil {
					return extensions.Usage{}, extensions.Errorf(extensions.KindUnreachable, "nobody answers")
				}
				u, err := usage(ctx, h)
				u.CPUMillis = new(*g.cpu)
				return u, err
			}
			c.Teardown = func(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
				g.called("teardown")
				r, err := teardown(ctx, h)
				g.mu.Lock()
				defer g.mu.Unlock()
				if gone[h.Ref] = err == nil; r.Usage == nil || g.atEnd == nil {
					r.Usage = nil
					return r, err
				}
				r.Usage.CPUMillis = new(*g.atEnd)
				return r, err
			}
			c.Estimate = func(_ context.Context, _ extensions.Spec, d time.Duration) (extensions.Usage, error) {
				g.called("estimate")
				return g.estimate(d)
			}
		}}
}

// newGauged bills a tenth of a dollar per second of active CPU at the gauge's vendor.
func newGauged(t *testing.T, g *gauge) *bench {
	t.Helper()
	return newBench(t, onFiles(map[string]string{
		"extensions/ext.gauge.yaml": "id: ext.gauge\nhandler: gauge\nconfig: { dir: \"$VENDOR\" }\n",
		"prices/gauge.yaml": strings.Replace(prices("ext.gauge", "  - { component: vcpu, unit: vcpu-second, price: \"0.1\" }\n"),
			"wall-clock", "active-cpu", 1),
		"profiles/profile.gauge.yaml": profile("profile.gauge", "extension: ext.gauge\nresources: { cpu: 2, memory_mb: 512 }\n"),
	}), func(b *bench) {
		b.profile, b.Extensions = "profile.gauge", append(all(), g.extension())
	})
}

// events are the data of a sandbox's events.
func (b *bench) events(id engine.ID) (text string) {
	b.t.Helper()
	all, err := b.Events(b.t.Context(), string(id), 0)
	if err != nil {
		b.t.Fatal(told(err))
	}
	for _, e := range all {
		text += e.Data + "\n"
	}
	return text
}

// What a vendor measured settles an active-CPU life to the nano-unit, if it can
// be true. Else the allocation does, and the event says why.
func TestActiveCPUIsSettledByWhatTheVendorMeasured(t *testing.T) {
	t.Parallel()
	takesLong(t)
	n := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		live, atEnd *int64
		amount      string // "" = what was allocated
		refused     string
	}{
		"by its report":                    {live: n(900), atEnd: n(1230), amount: "0.123"},
		"of nothing":                       {live: n(0), atEnd: n(0), amount: "0.00"},
		"by the last look, if it forgets":  {live: n(900), amount: "0.09"},
		"not at all":                       {},
		"more than the time has":           {live: n(1), atEnd: n(1 << 40), refused: "CPU of 1099511627776 ms: at most"},
		"as much as there are numbers":     {atEnd: n(math.MaxInt64), refused: "CPU of 9223372036854775807 ms"},
		"negative":                         {atEnd: n(-5), refused: "CPU of -5 ms: it is negative"},
		"less than before":                 {live: n(900), atEnd: n(899), refused: "CPU of 899 ms: 900 were measured before"},
		"by its report, if it was unheard": {atEnd: n(1230), amount: "0.123"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gauge{cpu: n(0)}
			b := newGauged(t, g)
			s := b.create(engine.Request{Name: "one"})
			e := b.later(time.Minute)
			g.set(c.live, c.atEnd)
			r, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
			if err != nil || len(r.Charges) != 1 {
				t.Fatalf("%+v, %s", r, told(err))
			}
			running, _ := b.meter(s.ID).Lasted()
			want := c.amount
			if want == "" {
				want = meter.Amount(running.Milliseconds() * 2 * dollar / 10 / 1000).String() // two vCPUs
			}
			if got := r.Charges[0]; got.Component != "vcpu" || got.Amount != want {
				t.Errorf("charged %+v, not %s", got, want)
			}
			warned := slices.ContainsFunc(r.Notices, func(n engine.Notice) bool { return n.Summary == "A measurement was not believed" })
			if text := b.events(s.ID); warned != (c.refused != "") || strings.Contains(text, "measures_refused") != warned ||
				!strings.Contains(text, c.refused) {
				t.Errorf("%+v\n%s", r.Notices, text)
			}
			b.sound(true)
		})
	}
}

// What a sandbox used is read from its place while it lives: nothing is written
// by that, a place that does not answer leaves the time, and an end what was
// settled.
func TestUseIsReadWhileASandboxLives(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	g := &gauge{cpu: n(0), atEnd: n(2500)}
	b := newGauged(t, g)
	s := b.create(engine.Request{Name: "one"})
	e := b.later(time.Minute)
	wrote, _, err := verifyLedger(t.Context(), e)
	if err != nil {
		t.Fatal(told(err))
	}
	read := func(cpu *int64) (*engine.Actual, engine.UsageReport) {
		t.Helper()
		g.set(cpu, n(2500))
		a, err := e.Actual(t.Context(), s.ID)
		if err != nil || a == nil || len(a.Charges) != 1 || a.Running < time.Minute || a.Running > time.Hour {
			t.Fatalf("%+v, %s", a, told(err))
		}
		r, err := e.MeasuredUsage(t.Context(), engine.UsageQuery{By: []string{"component"}})
		if err != nil || len(r.Measured) != 1 || r.Measured[0].Sandbox != s.ID || len(r.Running) != 1 ||
			(r.Measured[0].Why == "") != (a.Why == "") {
			t.Fatalf("%+v, %s", r, told(err))
		}
		return a, r
	}
	a, r := read(n(1500))
	if a.Source != engine.ActualPlace || a.Why != "" || *a.Usage.CPUMillis != 1500 || a.Charges[0].Amount != "0.15" ||
		*r.Measured[0].Usage.CPUMillis != 1500 || r.Running[0].Consumed != "1.5" || r.Running[0].OwnKey.Sum != "0.15" {
		t.Errorf("measured: %+v, %+v", a, r)
	}
	for name, c := range map[string]struct {
		cpu *int64
		why string
	}{"unreachable": {nil, "nobody answers"}, "impossible": {n(1 << 50), "its measurement was not believed: CPU of"},
		"negative": {n(-1), "it is negative"}} {
		a, r := read(c.cpu)
		if !strings.Contains(a.Why, c.why) || a.Charges[0].Amount < "12" || a.Charges[0].Amount > "19" || r.Running[0].OwnKey.Sum < "12" ||
			(a.Source == engine.ActualTime) != (c.cpu == nil) {
			t.Errorf("%s: %+v, %+v", name, a, r)
		}
	}
	g.told()
	if r, err := e.Usage(t.Context(), engine.UsageQuery{}); err != nil || len(r.Measured) != 0 || len(r.Running) != 1 {
		t.Errorf("%+v, %s", r, told(err))
	}
	if _, err := e.Plan(t.Context(), engine.Request{Profile: "profile.gauge", Name: "two"}); err != nil {
		t.Error(told(err))
	}
	if calls := g.told(); len(calls) > 0 {
		t.Errorf("a report of the ledger and a plan asked the place: %v", calls)
	}
	if now, _, err := verifyLedger(t.Context(), e); err != nil || now != wrote {
		t.Errorf("reading wrote %d events, %s", now-wrote, told(err))
	}
	if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(told(err))
	}
	g.told()
	a, err = e.Actual(t.Context(), s.ID)
	if err != nil || a.Source != engine.ActualSettled || len(a.Charges) != 1 || a.Charges[0].Amount != "0.25" || a.Running < time.Minute ||
		len(g.told()) > 0 {
		t.Errorf("settled: %+v, %s", a, told(err))
	}
}

// A recreate ends a life before it tears its sandbox down, and settles it by
// what its place measured until then.
func TestARecreateSettlesByWhatWasMeasured(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	g := &gauge{cpu: n(0), atEnd: n(0)}
	b := newGauged(t, g)
	s := b.create(engine.Request{Name: "one"})
	e := b.later(time.Minute)
	g.set(n(700), n(700))
	again, err := e.Recreate(t.Context(), s.Receipt, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	if cs, err := e.Charges(t.Context(), s.ID); err != nil || len(cs) != 1 || cs[0].Amount != "0.07" {
		t.Errorf("%+v, %s", cs, told(err))
	}
	g.set(n(-3), n(10))
	if a, err := e.Actual(t.Context(), s.ID); err != nil || !strings.Contains(a.Why, "negative") || a.Usage == nil ||
		a.Usage.CPUMillis != nil {
		t.Errorf("%+v, %s", a, told(err))
	}
	if r, err := e.Destroy(t.Context(), again.Receipt, engine.DestroyOptions{}); err != nil || len(r.Charges) != 2 {
		t.Errorf("%+v, %s", r, told(err))
	}
	b.sound(true)
}
