package conformance

import (
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var idleChecks = []check{
	{name: "idle/refused-where-nobody-enforces-it", run: func(e *env) {
		if e.desc.Capabilities.IdleReap == extensions.IdleReapNone {
			e.refused("provision with an end by idleness, which is not declared", e.spec(withIdleReap(time.Hour)), extensions.KindUnsupported)
		}
	}},
	{name: "idle/ends-it", reaps: true, run: func(e *env) {
		after := e.quickIdle()
		_, h, _ := e.ready(withIdleReap(after))
		o := e.idleEnd(h, after)
		if !o.Idle || o.EndedAt.IsZero() || !o.EndedAt.Before(o.Deadline) {
			e.Errorf("idle %t, ended %s, deadline %s; want an end by idleness, and when", o.Idle, o.EndedAt, o.Deadline)
		}
		if lived := o.EndedAt.Sub(o.StartedAt); lived < after-time.Second {
			e.Errorf("it lived for %s, and had to be idle for %s", lived, after)
		}
	}},
	{name: "idle/says-since-when", reaps: true, power: extensions.PowerExec, run: func(e *env) {
		_, never, _ := e.ready()
		_, h, _ := e.ready(withIdleReap(longIdle))
		e.idleFrom("it was made", h, time.Time{})
		before := e.observe(h).IdleSince
		e.sh(h, "true")
		e.idleFrom("a command", h, before)
		if o := e.observe(never); !o.IdleSince.IsZero() {
			e.Errorf("idle since %s, and no idleness ends it", o.IdleSince)
		}
	}},
	{name: "idle/never-under-a-command", reaps: true, power: extensions.PowerExec, run: func(e *env) {
		after := e.usableIdle()
		_, h, _ := e.ready(withIdleReap(after))
		in, hold := io.Pipe()
		var heard output
		ended := make(chan error, 1)
		go func() {
			_, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Stdout: &heard, Stdin: in, Timeout: 10 * time.Minute,
				Command: []string{"sh", "-c", "sleep 3600 >/dev/null 2>&1 & echo on; cat"}})
			ended <- err
		}()
		defer func() { _ = hold.Close() }()
		e.await("the command printed nothing", func() bool { return heard.has("on") })
		e.advance(after + after/2)
		if o := e.observe(h); o.Phase != extensions.PhaseReady || !o.IdleSince.IsZero() {
			e.Errorf("while a command runs it is %s (%s), idle since %s", o.Phase, o.Reason, o.IdleSince)
		}
		_ = hold.Close()
		if err := <-ended; err != nil {
			e.Errorf("the command: %v", err)
		}
		e.idleEnd(h, after) // a program that only waits keeps nothing from being idle
	}},
	{name: "idle/counts-a-connection", reaps: true, power: extensions.PowerPorts, hook: hookNamed("Serve", func(h Harness) bool {
		return h.Serve != nil
	}), run: func(e *env) {
		_, h, _ := e.ready(withIdleReap(longIdle))
		service, port := e.h.Serve(e.TB, e.b, h)
		c, err := power[extensions.PortForwarder](e, e.b).Dial(e.ctx(), h, service, port)
		if err != nil {
			e.Fatalf("dial: %v", err)
		}
		e.await("it counts as idle while a connection is open", func() bool { return e.observe(h).IdleSince.IsZero() })
		_ = c.Close()
		e.idleFrom("the connection", h, time.Time{})
	}},
	{name: "idle/counts-cpu", reaps: true, power: extensions.PowerExec, run: func(e *env) {
		_, h, _ := e.ready(withIdleReap(cpuIdle))
		if e.h.Compute == nil {
			e.sh(h, "(while :; do :; done) >/dev/null 2>&1 &")
		}
		e.idleFrom("the command", h, time.Time{})
		quiet := e.observe(h).IdleSince
		if e.h.Compute != nil {
			e.advance(time.Second)
			e.h.Compute(e.TB, e.cfg, h, extensions.IdleCPU(cpuIdle))
		}
		e.idleFrom("it computed", h, quiet)
	}},
	{name: "idle/a-paused-one-is-not", reaps: true, power: extensions.PowerPause, run: func(e *env) {
		after := e.usableIdle()
		spec, h, _ := e.ready(withIdleReap(after))
		e.idleFrom("it was made", h, time.Time{})
		before := e.observe(h).IdleSince
		if o := e.pause(h); !o.IdleSince.IsZero() {
			e.Errorf("paused, it is idle since %s", o.IdleSince)
		}
		if e.h.Advance != nil {
			e.advance(2 * after)
		}
		e.wantPhase(h, extensions.PhasePaused)
		e.resume(h, spec.Deadline)
		e.idleFrom("the resume", h, before)
	}},
}

const (
	// longIdle never passes in a check; cpuIdle neither, but a busy loop soon uses IdleCPU of it.
	longIdle = sandboxTTL / 2
	cpuIdle  = 2 * time.Minute
)

func withIdleReap(after time.Duration) Option {
	return func(s *extensions.Spec) { s.IdleReap = extensions.Duration(after) }
}

// quickIdle is soon over; usableIdle leaves the time to use a sandbox, on a busy machine too.
func (e *env) quickIdle() time.Duration {
	if e.h.Advance != nil {
		return time.Minute
	}
	return 2 * e.shortTTL()
}

func (e *env) usableIdle() time.Duration {
	if e.h.Advance != nil {
		return time.Minute
	}
	return 30 * time.Second
}

// idleEnd lets an unused sandbox end.
func (e *env) idleEnd(h extensions.Handle, after time.Duration) (o extensions.Observation) {
	e.Helper()
	e.advance(after)
	e.await("it is idle and does not end", func() bool {
		o = e.observe(h)
		return o.Phase == extensions.PhaseExpired
	})
	return o
}

// idleFrom waits until h counts as idle since a later time than before.
func (e *env) idleFrom(what string, h extensions.Handle, before time.Time) {
	e.Helper()
	e.await("it does not count as idle since "+what, func() bool { return e.observe(h).IdleSince.After(before) })
}

// await waits for what a place sees when it looks the next time.
func (e *env) await(failure string, done func() bool) {
	e.Helper()
	for began := time.Now(); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 4*e.h.limit() {
			e.Fatal(failure)
		}
	}
}
