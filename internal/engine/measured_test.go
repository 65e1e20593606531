package engine_test

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// gauge is a vendor that bills active CPU, and measures what a test sets.
type gauge struct {
	mu        sync.Mutex
	cpu       *int64 // while it lives; nil = it does not answer
	atEndOnly bool   // while it lives, it answers without CPU
	atEnd     *int64 // in the report of the teardown; nil = no measure in it
	calls     []string
	estimate  func(d time.Duration) (extensions.Usage, error)
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
				if u.CPUMillis = new(*g.cpu); g.atEndOnly {
					u.CPUMillis = nil
				}
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

// Where a look tells less than a teardown, a recreate settles by the teardown, if wallet and budgets have room for both
// lives meanwhile; else by the time until it began, as nothing is torn down that cannot be paid for again.
func TestARecreateSettlesByItsTeardownWhereALookTellsLess(t *testing.T) {
	t.Parallel()
	takesLong(t)
	n := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		setUp func(b *bench)
		told  bool
	}{
		"own key":      {func(*bench) {}, true},
		"credit":       {func(b *bench) { b.grant(300 * dollar) }, true},
		"tight credit": {func(b *bench) { b.grant(200 * dollar) }, false},
		"tight budget": {func(b *bench) { b.grant(300 * dollar); b.budget("cap", 200*dollar, true) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gauge{cpu: n(0), atEnd: n(700), atEndOnly: true}
			b := newGauged(t, g)
			c.setUp(b)
			s := b.create(engine.Request{Name: "one", TTL: "10m"})
			hold := b.held(s.ID)
			e := b.later(time.Minute)
			again, err := e.Recreate(t.Context(), s.Receipt, nil, nil)
			if err != nil {
				t.Fatal(told(err))
			}
			cs, err := e.Charges(t.Context(), s.ID)
			if err != nil || len(cs) != 1 || (cs[0].Amount == "0.07") != c.told {
				t.Errorf("%+v, %s", cs, told(err))
			}
			if held := b.held(s.ID); held != hold || hold == 0 {
				t.Errorf("%d is held for the new life, %d was for the first", held, hold)
			}
			if _, err := e.Destroy(t.Context(), again.Receipt, engine.DestroyOptions{}); err != nil {
				t.Error(told(err))
			}
			if ms := b.meters(s.ID); len(ms) != 2 || ms[0].Generation != 1 || ms[1].Generation != 2 || ms[1].OpenedAt.Before(ms[0].ClosedAt) {
				t.Errorf("%+v", ms)
			}
			if held := b.held(s.ID); held != 0 {
				t.Errorf("%d is held for nothing", held)
			}
			b.sound(true)
		})
	}
}

// A run that dies leaves a life that only the teardown can settle to the next one, which settles it once: by its own
// teardown, or, if that was done, by an estimate.
func TestAKillWhileATeardownSettlesIsSettledOnce(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	for point, known := range map[string]bool{"engine.destroy.begun": true, "engine.create.begun": false, "engine.create.placed": true} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			g := &gauge{cpu: n(0), atEnd: n(700), atEndOnly: true}
			b := newGauged(t, g)
			b.grant(1000 * dollar)
			s := b.create(engine.Request{Name: "one", TTL: "10m"})
			dying, over := b.later(time.Minute), make(chan struct{})
			go func() {
				defer close(over)
				ctx := failpointtest.Inject(t.Context(), point, func() error { runtime.Goexit(); return nil })
				_, err := dying.Recreate(ctx, s.Receipt, nil, nil)
				t.Errorf("it came to an end: %v", err)
			}()
			<-over
			if err := dying.Close(); err != nil {
				t.Fatal(err)
			}
			b.sound(true)
			if err := b.later(time.Minute).Recover(t.Context(), nil); err != nil {
				t.Fatal(told(err))
			}
			cs, err := b.reopen().Charges(t.Context(), s.ID)
			if err != nil || len(cs) != 1 || (cs[0].Amount == "0.07") != known || b.held(s.ID) != 0 || len(b.left()) > 0 {
				t.Errorf("%+v, %s, %d is held, left %v", cs, told(err), b.held(s.ID), b.left())
			}
			b.closed()
			b.sound(true)
		})
	}
}

// What could not be torn down goes on, and its end settles it.
func TestARecreateThatCannotTearDownLeavesTheMeterOn(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	g := &gauge{cpu: n(0), atEnd: n(700), atEndOnly: true}
	b := newGauged(t, g)
	b.grant(300 * dollar)
	s := b.create(engine.Request{Name: "one", TTL: "10m"})
	hold := b.held(s.ID)
	b.script(saasstub.Rule{Op: vendor.OpDelete, Do: vendor.DoUnauthorized})
	e := b.later(time.Minute)
	left, err := e.Recreate(t.Context(), s.Receipt, nil, nil)
	if err == nil || left.State != "failed" || !b.meter(s.ID).Open() || b.held(s.ID) != hold {
		t.Errorf("%s, %s: %d is held", left.State, told(err), b.held(s.ID))
	}
	b.script()
	r, err := e.Destroy(t.Context(), left.Receipt, engine.DestroyOptions{})
	if err != nil || len(r.Charges) != 1 || r.Charges[0].Amount != "0.07" {
		t.Errorf("%+v, %s", r, told(err))
	}
	b.sound(true)
}
