package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var handleChecks = []check{
	{name: "handle/names-its-object", shares: true, run: func(e *env) {
		spec, h, _ := e.ready()
		if h.Extension != e.desc.Handler || h.ID != spec.ID || h.Version < 1 || h.Ref == "" {
			e.Errorf("the handle %s does not name extension, version, id and object", h.Encode())
		}
		if len(h.Data) > 4<<10 {
			e.Errorf("the handle's data has %d bytes, allowed are 4 KiB", len(h.Data))
		}
	}},
	{name: "handle/roundtrip", shares: true, run: func(e *env) {
		_, h, _ := e.ready()
		again, err := extensions.DecodeHandle(h.Encode())
		if h.Encode() == "" {
			e.Fatal("the handle cannot be written")
		}
		if err != nil {
			e.Fatalf("the handle %q cannot be read back: %v", h.Encode(), err)
		}
		if again.Encode() != h.Encode() {
			e.Errorf("read back as %s, want %s", again.Encode(), h.Encode())
		}
	}},
	{name: "handle/works-in-another-process", shares: true, run: func(e *env) {
		_, h, _ := e.ready()
		again, err := extensions.DecodeHandle(h.Encode())
		if err != nil {
			e.Fatal(err)
		}
		b := e.openAs(e.cfg)
		if o := e.observeOn(b, again); o.Phase != extensions.PhaseReady {
			e.Errorf("another process sees %s (%v)", o.Phase, o.Err)
		}
		if r, err := b.Teardown(e.ctx(), again); err != nil || r.AlreadyGone {
			e.Errorf("teardown by another process: %+v, %v", r, err)
		}
	}},
}

var errorChecks = []check{
	{name: "errors/classified", run: func(e *env) {
		_, _, invalid := e.b.Provision(e.ctx(), e.spec(With(func(s *extensions.Spec) { s.ID = "x" })))
		_, unknown := e.b.Find(e.ctx(), e.newID())
		for what, err := range map[string]error{"provision with a bad id": invalid, "find of an unknown id": unknown} {
			var classified *extensions.Error
			switch {
			case err == nil:
				e.Errorf("%s: no error", what)
			case !errors.As(err, &classified):
				e.Errorf("%s: %T is not the contract's error", what, err)
			case classified.Kind == "" || classified.Op == "":
				e.Errorf("%s: kind %q, operation %q", what, classified.Kind, classified.Op)
			}
		}
	}},
	{name: "errors/text-is-clean", run: func(e *env) {
		_, _, err := e.b.Provision(e.ctx(), e.spec(With(func(s *extensions.Spec) { s.ID = "sbx-\x1b[31m\nforged: line\x00" })))
		if err == nil {
			e.Fatal("no error for an id with control characters")
		}
		if strings.ContainsFunc(err.Error(), unicode.IsControl) {
			e.Errorf("the message has control characters: %q", err.Error())
		}
	}},
	{name: "errors/unauthorized", hook: hookNamed("Unauthorized", func(h Harness) bool { return h.Unauthorized != nil }), run: func(e *env) {
		b, err := e.h.New(e.TB).Open(e.ctx(), e.h.Unauthorized(e.TB, e.cfg))
		if err == nil {
			defer func() { _ = b.Close() }()
			_, err = b.Status(e.ctx(), nil)
		}
		e.wantKind("a call with refused credentials", err, extensions.KindUnauthorized)
	}},
	{name: "errors/each-alternative-opens", hook: hookNamed("Accepted", func(h Harness) bool { return h.Accepted != nil }), run: alternatives},
	{name: "errors/throttled-is-told-not-retried", hook: hookNamed("Throttle", func(h Harness) bool { return h.Throttle != nil }),
		run: throttled},
	{name: "errors/poll-tells-a-faltering-answer", hook: hookNamed("Falter", func(h Harness) bool { return h.Falter != nil }),
		run: falters},
	{name: "errors/unreachable-is-not-absent", hook: hookNamed("Unreachable", func(h Harness) bool { return h.Unreachable != nil }),
		run: func(e *env) {
			spec, h, _ := e.ready()
			e.h.Unreachable(e.TB, e.cfg)
			all, err := e.b.Status(e.ctx(), []extensions.Handle{h})
			switch {
			case err != nil:
				e.wantKind("status", err, extensions.KindUnreachable)
			case len(all) != 1 || all[0].Phase != extensions.PhaseUnreachable || all[0].ID != h.ID:
				e.Errorf("status: %+v, want unreachable", all)
			default:
				e.wantKind("status of the one", all[0].Err, extensions.KindUnreachable)
			}
			_, err = e.b.Status(e.ctx(), nil)
			e.wantKind("status of everything", err, extensions.KindUnreachable)
			_, err = e.b.Find(e.ctx(), spec.ID)
			e.wantKind("find", err, extensions.KindUnreachable)
			_, err = e.b.Teardown(e.ctx(), h)
			e.wantKind("teardown", err, extensions.KindUnreachable)
		}},
}

var cancelChecks = []check{
	{name: "cancel/provision-starts-nothing", run: func(e *env) {
		spec := e.spec()
		before := 0
		if e.h.Starts != nil {
			before = e.h.Starts(e.TB, e.cfg)
		}
		h, _, err := e.b.Provision(cancelled(), spec)
		e.cleanUp(h)
		if err == nil {
			e.Error("provision with a cancelled context succeeded")
		}
		if e.h.Starts != nil && e.h.Starts(e.TB, e.cfg) != before {
			e.Error("provision with a cancelled context asked the place for a sandbox")
		}
		if _, there := e.list(e.b)[spec.ID]; there {
			e.Error("provision with a cancelled context made a sandbox")
		}
	}},
	{name: "cancel/teardown-ends-nothing", run: func(e *env) {
		_, h, _ := e.ready()
		if _, err := e.b.Teardown(cancelled(), h); err == nil {
			e.Error("teardown with a cancelled context succeeded")
		}
		e.wantPhase(h, extensions.PhaseReady)
	}},
	{name: "cancel/nothing-is-absent", run: func(e *env) {
		spec, h, _ := e.ready()
		if all, err := e.b.Status(cancelled(), []extensions.Handle{h}); err == nil && all[0].Phase == extensions.PhaseAbsent {
			e.Error("status with a cancelled context says absent")
		}
		if _, err := e.b.Find(cancelled(), spec.ID); extensions.IsKind(err, extensions.KindNotFound) {
			e.Error("find with a cancelled context says not found")
		}
		if r, err := e.b.WaitReady(cancelled(), spec, h); extensions.IsKind(err, extensions.KindNotFound) {
			e.Errorf("wait ready with a cancelled context says not found: %v", r)
		}
	}},
}

// alternatives: each whole set of credentials is enough, and none is not.
func alternatives(e *env) {
	if len(e.desc.CredentialsAnyOf) == 0 {
		return
	}
	ask := func(given map[string]extensions.Secret) error {
		cfg := e.cfg
		cfg.Credentials = given
		b, err := e.h.New(e.TB).Open(e.ctx(), cfg)
		if err == nil {
			defer func() { _ = b.Close() }()
			_, err = b.Status(e.ctx(), nil)
		}
		return err
	}
	for _, set := range e.desc.CredentialsAnyOf {
		given := e.h.Accepted(e.TB, e.cfg, set)
		if err := ask(given); err != nil {
			e.Errorf("a call with %s: %v", extensions.Together(set), err)
		}
		if len(set) > 1 {
			delete(given, set[len(set)-1])
			e.wantKind("a call without "+set[len(set)-1], ask(given), extensions.KindUnauthorized)
		}
	}
	e.wantKind("a call without credentials", ask(nil), extensions.KindUnauthorized)
}

// throttled: only the engine retries, so it must hear of every refusal, and when to come again.
func throttled(e *env) {
	e.h.Throttle(e.TB, e.cfg)
	before := 0
	if e.h.Starts != nil {
		before = e.h.Starts(e.TB, e.cfg)
	}
	h, _, err := e.b.Provision(e.ctx(), e.spec())
	e.cleanUp(h)
	e.wantKind("provision at a place that takes fewer calls", err, extensions.KindUnavailable)
	var said *extensions.Error
	if errors.As(err, &said) && said.RetryAfter <= 0 {
		e.Errorf("the place said when to come again, and the error does not: %v", err)
	}
	if !h.IsZero() {
		e.Errorf("nothing was made, yet there is a handle: %s", h.Encode())
	}
	if e.h.Starts != nil && e.h.Starts(e.TB, e.cfg) > before+1 {
		e.Error("the place was asked again: a retry within the engine's retries")
	}
}

// falters: waiting has no effect, so what says that nothing was heard lets the engine wait on.
func falters(e *env) {
	spec := e.spec()
	h, _ := e.provision(spec)
	e.h.Falter(e.TB, e.cfg)
	_, err := e.b.WaitReady(e.ctx(), spec, h)
	e.wantKind("waiting while a gateway answers", err, extensions.KindUnavailable, extensions.KindUnreachable, extensions.KindIndeterminate)
	if _, err := e.b.WaitReady(e.ctx(), spec, h); err != nil {
		e.Errorf("waiting on: %v", err)
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// desktopRuns: a sandbox that requires a desktop has one from its readiness on, a resumed one too.
func desktopRuns(e *env) {
	if !slices.Contains(e.desc.Capabilities.Provides.RequirementKinds, extensions.RequireDesktop) {
		return
	}
	if e.h.Desktop == nil {
		e.skipWithout("Desktop")
	}
	spec, h, _ := e.ready(With(func(s *extensions.Spec) { s.Requires.Capabilities = []string{extensions.RequireDesktop} }))
	if !e.h.Desktop(e.TB, e.cfg, h) {
		e.Error("ready, and its desktop does not run")
	}
	if !e.desc.Has(extensions.PowerPause) {
		return
	}
	e.pause(h)
	e.resume(h, spec.Deadline)
	if !e.h.Desktop(e.TB, e.cfg, h) {
		e.Error("resumed, and its desktop does not run")
	}
}

// probeLater does what the engine does if commands come before the probe.
func probeLater(e *env) {
	spec := e.spec(With(func(s *extensions.Spec) {
		s.ProbeLater = true
		s.Readiness = &extensions.Probe{Command: []string{"sh", "-c", "printf x >>asked; test -f installed"},
			Interval: extensions.Duration(50 * time.Millisecond), Timeout: extensions.Duration(5 * time.Second)}
	}))
	h, o := e.provision(spec)
	if o.Phase != extensions.PhaseReady {
		usable := spec
		usable.Readiness = nil
		if _, err := e.b.WaitReady(e.ctx(), usable, h); err != nil {
			e.Fatalf("waiting without a probe: %v", err)
		}
	}
	if got := e.sh(h, "cat asked 2>/dev/null; printf x >installed"); got != "" {
		e.Errorf("the probe was asked %d times before its turn", len(got))
	}
	if _, err := e.b.WaitReady(e.ctx(), spec, h); err != nil {
		e.Fatalf("waiting with the probe: %v", err)
	}
	if e.sh(h, "cat asked") == "" {
		e.Error("ready, and the probe was never asked")
	}
}
