package exttest

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var handleChecks = []check{
	{name: "handle/names-its-object", run: func(e *env) {
		spec, h, _ := e.ready()
		if h.Extension != e.desc.Handler || h.ID != spec.ID || h.Version < 1 || h.Ref == "" {
			e.Errorf("the handle %s does not name extension, version, id and object", h.Encode())
		}
		if len(h.Data) > 4<<10 {
			e.Errorf("the handle's data has %d bytes, allowed are 4 KiB", len(h.Data))
		}
	}},
	{name: "handle/roundtrip", run: func(e *env) {
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
	{name: "handle/works-in-another-process", run: func(e *env) {
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
		b, err := e.h.New(e).Open(e.ctx(), e.h.Unauthorized(e, e.cfg))
		if err == nil {
			defer func() { _ = b.Close() }()
			_, err = b.Status(e.ctx(), nil)
		}
		e.wantKind("a call with refused credentials", err, extensions.KindUnauthorized)
	}},
	{name: "errors/unreachable-is-not-absent", hook: hookNamed("Unreachable", func(h Harness) bool { return h.Unreachable != nil }), run: func(e *env) {
		spec, h, _ := e.ready()
		e.h.Unreachable(e, e.cfg)
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
			before = e.h.Starts(e, e.cfg)
		}
		h, _, err := e.b.Provision(cancelled(), spec)
		e.cleanUp(h)
		if err == nil {
			e.Error("provision with a cancelled context succeeded")
		}
		if e.h.Starts != nil && e.h.Starts(e, e.cfg) != before {
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

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// probeLater does what the engine does where commands come before the probe.
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
