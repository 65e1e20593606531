package conformance

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits on one call and on the cleanup after a check.
const (
	callLimit    = 2 * time.Minute
	cleanupLimit = 2 * time.Minute
)

// env is what one check works with: a place and a backend open there.
type env struct {
	TB
	h    Harness
	ext  extensions.Extension
	desc extensions.Descriptor // what ext declares for cfg
	cfg  extensions.Config
	b    extensions.Backend
	// began is when the check began, which took what its calls took.
	began time.Time
	// common has the sandbox that the check shares; nil = none.
	common *common
	// creating is how long the create of the shared sandbox took, before the check began.
	creating time.Duration
	// advanced is how far the check moved the place's clock ahead of ours.
	advanced time.Duration
}

func (e *env) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	e.Cleanup(cancel)
	return ctx
}

func (e *env) open() { e.b = e.openAs(e.cfg) }

// openAs opens the extension again, as another process would.
func (e *env) openAs(cfg extensions.Config) extensions.Backend {
	e.Helper()
	b, err := e.h.New(e.TB).Open(e.ctx(), cfg)
	if err != nil {
		e.Fatalf("open: %v", err)
	}
	e.Cleanup(func() {
		if err := b.Close(); err != nil {
			e.Errorf("close: %v", err)
		}
	})
	return b
}

// generation is that of the suite's sandboxes, one that no place makes up.
const generation = 3

// spec returns the minimal spec for this place, which denies the network if the place can.
func (e *env) spec(opts ...Option) extensions.Spec {
	e.Helper()
	usual := With(func(s *extensions.Spec) {
		s.Generation = generation
		s.Isolation = e.desc.Capabilities.IsolationLevels[0]
		if e.capabilities().Egress == extensions.EgressNone {
			s.Network.Default = "allow"
		}
	})
	s := Spec(e, e.cfg, append([]Option{usual}, opts...)...)
	if e.h.Spec != nil {
		s = e.h.Spec(e.TB, e.cfg, s)
	}
	return s
}

// provision creates a sandbox, which must succeed, and tears it down at the end.
func (e *env) provision(spec extensions.Spec) (extensions.Handle, extensions.Observation) {
	e.Helper()
	h, o, err := e.b.Provision(e.ctx(), spec)
	e.cleanUp(h)
	if err != nil {
		e.Fatalf("provision: %v", err)
	}
	return h, o
}

// refused provisions what must be refused, and have made nothing: the next place would make a second one.
func (e *env) refused(what string, spec extensions.Spec, kinds ...extensions.Kind) {
	e.Helper()
	h, _, err := e.b.Provision(e.ctx(), spec)
	e.cleanUp(h)
	e.wantKind(what, err, kinds...)
	if !h.IsZero() {
		e.Errorf("nothing was made, yet there is a handle: %s", h.Encode())
	}
	if _, there := e.list(e.b)[spec.ID]; there {
		e.Error("the refused sandbox is listed")
	}
}

// cleanUp tears h down when the check ends. It only logs a failure: that is the place's fault, not the fault
// of the promise under test.
func (e *env) cleanUp(h extensions.Handle) {
	if h.IsZero() {
		return
	}
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
		defer cancel()
		b, err := e.h.New(e.TB).Open(ctx, e.cfg)
		if err != nil {
			e.Logf("cleanup: open: %v", err)
			return
		}
		defer func() { _ = b.Close() }()
		if _, err := b.Teardown(ctx, h); err != nil {
			e.Logf("cleanup: teardown of %s: %v", h.ID, err)
		}
	})
}

// ready returns a sandbox that is usable: a new one, or that of the group if the check shares it.
func (e *env) ready(opts ...Option) (extensions.Spec, extensions.Handle, extensions.Reachability) {
	e.Helper()
	if e.common != nil && len(opts) == 0 {
		return e.common.ready(e)
	}
	return e.another(opts...)
}

// another returns a new sandbox that is usable.
func (e *env) another(opts ...Option) (extensions.Spec, extensions.Handle, extensions.Reachability) {
	e.Helper()
	spec := e.spec(opts...)
	h, o := e.provision(spec)
	return spec, h, e.waited(spec, h, o)
}

// waited waits until what was provisioned is usable.
func (e *env) waited(spec extensions.Spec, h extensions.Handle, o extensions.Observation) extensions.Reachability {
	e.Helper()
	if o.Phase == extensions.PhaseReady {
		return o.Reachability
	}
	o, err := e.b.WaitReady(e.ctx(), spec, h)
	if err != nil {
		e.Fatalf("wait ready: %v", err)
	}
	return o.Reachability
}

// brief creates a sandbox with a lifetime that a check can wait for.
func (e *env) brief() (extensions.Spec, extensions.Handle) {
	e.Helper()
	spec, h, _ := e.briefly(WithTTL)
	return spec, h
}

// briefly creates a sandbox that ends by itself after the time that it gives to ending, and returns. It can be used before that:
// one that took more than a third of its life to become ready, on a busy machine, is replaced by one that lives twice as long.
func (e *env) briefly(ending func(time.Duration) Option) (extensions.Spec, extensions.Handle, time.Duration) {
	e.Helper()
	for life := e.shortTTL(); ; life *= 2 {
		began := time.Now()
		spec := e.spec(ending(life))
		h, o, err := e.b.Provision(e.ctx(), spec)
		e.cleanUp(h)
		if err == nil && o.Phase != extensions.PhaseReady {
			o, err = e.b.WaitReady(e.ctx(), spec, h)
		}
		if err == nil && time.Since(began) < life/3 {
			return spec, h, life
		}
		if took := time.Since(began); took < life/3 || life > longestBrief {
			e.Fatalf("a sandbox that ends after %s: after %s it is %s, %v", life, took, o.Phase, err)
		}
		if !h.IsZero() {
			e.teardown(h)
		}
	}
}

// longestBrief is the longest life that is doubled.
const longestBrief = time.Minute

// outlive lets a sandbox's whole lifetime pass.
func (e *env) outlive(spec extensions.Spec) {
	e.Helper()
	e.advance(life(spec) + time.Second)
}

func life(spec extensions.Spec) time.Duration { return spec.Deadline.Sub(spec.CreatedAt) }

// observe returns the observation of one sandbox.
func (e *env) observe(h extensions.Handle) extensions.Observation {
	e.Helper()
	return e.observeOn(e.b, h)
}

// wantEnd checks that the place ends a sandbox at its deadline: never earlier, and at most its grain later, beside the time
// that a call was on its way to a place that counts from its arrival. A place that ends nothing itself tells no deadline.
func (e *env) wantEnd(h extensions.Handle, deadline time.Time) {
	e.Helper()
	o := e.observe(h)
	if e.desc.Capabilities.Expiry == extensions.ExpirySweep {
		if !o.Deadline.IsZero() {
			e.Errorf("only a sweep ends it, and the place tells the deadline %s", o.Deadline)
		}
		return
	}
	late := o.Deadline.Sub(deadline)
	took := e.creating + time.Since(e.began)
	if grain := e.desc.Capabilities.DeadlineGrain; late < -time.Second || late > grain+time.Second+took {
		e.Errorf("the place will end it %s after its deadline, want between 0s and %s", late, grain)
	}
}

func (e *env) observeOn(b extensions.Backend, h extensions.Handle) extensions.Observation {
	e.Helper()
	all, err := b.Status(e.ctx(), []extensions.Handle{h})
	if err != nil {
		e.Fatalf("status: %v", err)
	}
	if len(all) != 1 {
		e.Fatalf("status of one handle: %d observations", len(all))
	}
	return all[0]
}

// list returns the account's sandboxes by id.
func (e *env) list(b extensions.Backend) map[extensions.ID]extensions.Observation {
	e.Helper()
	e.settleList()
	all, err := b.Status(e.ctx(), nil)
	if err != nil {
		e.Fatalf("status of everything: %v", err)
	}
	byID := map[extensions.ID]extensions.Observation{}
	for _, o := range all {
		if _, twice := byID[o.ID]; twice {
			e.Errorf("the list shows %s twice", o.ID)
		}
		byID[o.ID] = o
	}
	return byID
}

// settle waits until a look-up must see what exists, settleList until a list must show what is.
func (e *env) settle()     { e.catchUp(e.desc.Find.Settle) }
func (e *env) settleList() { e.catchUp(e.desc.List.Lag) }

func (e *env) catchUp(most time.Duration) {
	switch {
	case most == 0:
	case e.h.Settle != nil:
		e.h.Settle(e.TB, e.cfg)
	default:
		time.Sleep(most)
	}
}

func (e *env) advance(d time.Duration) {
	e.Helper()
	if e.h.Advance != nil {
		e.advanced += d
		e.h.Advance(e.TB, e.cfg, d)
		return
	}
	time.Sleep(d)
}

// shortTTL returns a lifetime short enough for a check to wait for.
func (e *env) shortTTL() time.Duration {
	if e.h.ShortTTL > 0 {
		return e.h.ShortTTL
	}
	return 2 * time.Second
}

// newID returns an unused id.
func (e *env) newID() extensions.ID {
	e.Helper()
	id, err := extensions.NewID(nil)
	if err != nil {
		e.Fatal(err)
	}
	return id
}

// exec runs a command that must work.
func (e *env) exec(h extensions.Handle, req extensions.ExecRequest) extensions.ExecResult {
	e.Helper()
	res, err := e.execer().Exec(e.ctx(), h, req)
	if err != nil {
		e.Fatalf("exec %q%s: %v", req.Command, req.Shell, err)
	}
	return res
}

// sh runs a script that must succeed and returns what it printed.
func (e *env) sh(h extensions.Handle, script string) string {
	e.Helper()
	res := e.exec(h, extensions.ExecRequest{Command: []string{"sh", "-c", script}})
	if res.ExitCode != 0 {
		e.Fatalf("sh -c %q: exit code %d, stderr %q", script, res.ExitCode, res.Stderr)
	}
	return strings.TrimSuffix(string(res.Stdout), "\n")
}

func (e *env) execer() extensions.Execer { return power[extensions.Execer](e, e.b) }

// power returns an optional interface that the descriptor declares.
func power[T any](e *env, b extensions.Backend) T {
	e.Helper()
	p, ok := b.(T)
	if !ok {
		e.Fatalf("the descriptor declares a power that the backend does not have: %T", (*T)(nil))
	}
	return p
}

// wantKind checks the kind of an error.
func (e *env) wantKind(what string, err error, kinds ...extensions.Kind) {
	e.Helper()
	if err == nil {
		e.Errorf("%s: no error, want %v", what, kinds)
		return
	}
	got := extensions.KindOf(err)
	for _, k := range kinds {
		if got == k {
			return
		}
	}
	e.Errorf("%s: %s (%v), want %v", what, got, err, kinds)
}

func (e *env) wantPhase(h extensions.Handle, phases ...extensions.Phase) extensions.Observation {
	e.Helper()
	o := e.observe(h)
	for _, p := range phases {
		if o.Phase == p {
			return o
		}
	}
	e.Errorf("phase %s (%s, %v), want %v", o.Phase, o.Reason, o.Err, phases)
	return o
}

// wantExpiry lets the lifetime of a sandbox pass, and checks that the place ends it of itself.
func (e *env) wantExpiry(h extensions.Handle, life time.Duration) extensions.Observation {
	e.Helper()
	e.advance(life + time.Second)
	for end := time.Now().Add(endPatience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if p := e.observe(h).Phase; p == extensions.PhaseExpired || p == extensions.PhaseAbsent {
			break
		}
	}
	return e.wantPhase(h, extensions.PhaseExpired, extensions.PhaseAbsent)
}

func (e *env) teardown(h extensions.Handle) extensions.CleanupReport {
	e.Helper()
	r, err := e.b.Teardown(e.ctx(), h)
	if err != nil {
		e.Fatalf("teardown: %v", err)
	}
	return r
}

func equal(e *env, what string, got, want []byte) {
	e.Helper()
	if bytes.Equal(got, want) {
		return
	}
	if len(got) > 200 || len(want) > 200 {
		e.Errorf("%s: %d bytes that differ from the %d wanted", what, len(got), len(want))
		return
	}
	e.Errorf("%s: %q, want %q", what, got, want)
}

// hookNamed names the hook that a check needs.
func hookNamed(name string, has func(Harness) bool) func(Harness) (string, bool) {
	return func(h Harness) (string, bool) { return name, has(h) }
}
