package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// endPatience is how long a busy place may take to end what is due, or to show that it has ended.
const endPatience = 15 * time.Second

var entrypointChecks = []check{
	{name: "entrypoint/undeclared-refused", run: func(e *env) {
		for _, mode := range extensions.EntrypointModes {
			if slices.Contains(e.desc.Capabilities.Entrypoints, mode) {
				continue
			}
			point := extensions.Entrypoint{Mode: mode}
			if mode == extensions.EntrypointArgv {
				point.Argv = []string{"sleep", "3600"}
			}
			e.refused("provision with an entrypoint of the kind "+string(mode)+", which is not declared", e.spec(WithEntrypoint(point)),
				extensions.KindUnsupported)
		}
	}},
	{name: "entrypoint/runs-by-itself", power: extensions.PowerExec, run: func(e *env) {
		if !e.runs(extensions.EntrypointArgv) {
			return
		}
		_, h, _ := e.ready(WithEnv("WORD", "of the environment"), WithEntrypoint(argv(`printf %s "$1 $WORD" >ran; sleep 3600`, "literal $HOME")))
		if got := e.soon(h, "ran"); got != "literal $HOME of the environment" {
			e.Errorf("the entrypoint left %q", got)
		}
	}},
	{name: "entrypoint/has-the-secrets", power: extensions.PowerExec, run: func(e *env) {
		if !e.runs(extensions.EntrypointArgv) {
			return
		}
		for as, read := range map[extensions.SecretDelivery]string{extensions.SecretsEnv: `printf %s "$CANARY"`,
			extensions.SecretsFile: "cat " + extensions.SecretsDir + "/CANARY"} {
			if !slices.Contains(e.desc.Capabilities.SecretsAs, as) {
				continue
			}
			_, h, _ := e.ready(WithSecret("CANARY", canary), WithSecretsAs(as), WithEntrypoint(argv(read+" >got; sleep 3600")))
			if got := e.soon(h, "got"); got != canary {
				e.Errorf("secrets as %s: the entrypoint read %q", as, got)
			}
		}
	}},
	{name: "entrypoint/exit-ends-the-sandbox", power: extensions.PowerExec, run: func(e *env) {
		if !e.runs(extensions.EntrypointArgv) {
			return
		}
		for code, phase := range map[int]extensions.Phase{0: extensions.PhaseTerminated, 3: extensions.PhaseFailed} {
			_, h, life := e.briefly(func(d time.Duration) Option {
				return WithEntrypoint(argv(fmt.Sprintf("sleep %d; exit %d", int(d/time.Second), code)))
			})
			e.wantPhase(h, extensions.PhaseReady)
			e.exits(h, life, phase, code)
		}
	}},
	{name: "entrypoint/ended-is-not-extended", power: extensions.PowerExtend, run: func(e *env) {
		if !e.runs(extensions.EntrypointArgv) {
			return
		}
		spec, h, life := e.briefly(func(d time.Duration) Option {
			return WithEntrypoint(argv(fmt.Sprintf("sleep %d", int(d/time.Second))))
		})
		e.ended(h, life)
		err := power[extensions.Extender](e, e.b).Extend(e.ctx(), h, spec.Deadline.Add(sandboxTTL/2))
		e.wantKind("extend of a sandbox whose entrypoint has ended", err, extensions.KindNotFound)
	}},
	{name: "entrypoint/exit-before-ready-fails", power: extensions.PowerExec, run: func(e *env) {
		if !e.runs(extensions.EntrypointArgv) {
			return
		}
		spec := e.spec(WithEntrypoint(argv("exit 3")), With(func(s *extensions.Spec) { s.Settle = extensions.Duration(2 * time.Second) }))
		h, _, err := e.b.Provision(e.ctx(), spec)
		e.cleanUp(h)
		if err == nil {
			_, err = e.b.WaitReady(e.ctx(), spec, h)
		}
		e.wantKind("a sandbox whose entrypoint ends at once", err, extensions.KindFailed)
		if err != nil && !strings.Contains(err.Error(), "exit code 3") {
			e.Errorf("the error does not tell the exit code: %v", err)
		}
	}},
	{name: "entrypoint/runs-the-image", power: extensions.PowerExec, hook: hookNamed("OwnEntrypoint", func(h Harness) bool {
		return h.OwnEntrypoint != nil
	}), run: func(e *env) {
		if !e.runs(extensions.EntrypointImage) {
			return
		}
		spec := e.h.OwnEntrypoint(e.TB, e.cfg, e.spec(WithEntrypoint(extensions.Entrypoint{Mode: extensions.EntrypointImage})))
		h, o := e.provision(spec)
		if o.Phase != extensions.PhaseReady {
			if _, err := e.b.WaitReady(e.ctx(), spec, h); err != nil {
				e.Fatalf("wait ready: %v", err)
			}
		}
		if got := e.soon(h, "ran"); got != "own" {
			e.Errorf("the image's entrypoint left %q", got)
		}
	}},
}

// argv is a script as an entrypoint.
func argv(script string, params ...string) extensions.Entrypoint {
	return extensions.Entrypoint{Mode: extensions.EntrypointArgv, Argv: append([]string{"sh", "-c", script, "sh"}, params...)}
}

// WithEntrypoint sets what runs by itself.
func WithEntrypoint(p extensions.Entrypoint) Option {
	return func(s *extensions.Spec) { s.Entrypoint = p }
}

func (e *env) runs(mode extensions.EntrypointMode) bool {
	return slices.Contains(e.desc.Capabilities.Entrypoints, mode)
}

// soon returns what a file has, once the entrypoint has written it.
func (e *env) soon(h extensions.Handle, file string) string {
	e.Helper()
	for end := time.Now().Add(endPatience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if res := e.exec(h, extensions.ExecRequest{Shell: "test -s " + file + " && cat " + file}); res.ExitCode == 0 {
			return string(res.Stdout)
		}
	}
	e.Errorf("nothing has written to %s", file)
	return ""
}

// ended waits until the entrypoint has ended, and says what is seen then.
func (e *env) ended(h extensions.Handle, after time.Duration) extensions.Observation {
	e.Helper()
	e.advance(after + time.Second)
	o := e.observe(h)
	for end := time.Now().Add(endPatience); o.Phase == extensions.PhaseReady && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		o = e.observe(h)
	}
	return o
}

// exits waits until the entrypoint has ended, and checks what is told of it.
func (e *env) exits(h extensions.Handle, after time.Duration, want extensions.Phase, code int) {
	e.Helper()
	o := e.ended(h, after)
	if o.Phase != want || !strings.Contains(o.Reason, fmt.Sprintf("exit code %d", code)) {
		e.Errorf("its entrypoint ended with %d, and it is %s: %q", code, o.Phase, o.Reason)
	}
	latest := time.Now().Add(e.advanced + 2*time.Second)
	if o.EndedAt.Before(o.StartedAt) || o.EndedAt.After(latest) {
		e.Errorf("it ended at %s, want between its start at %s and %s", o.EndedAt, o.StartedAt, latest)
	}
	if res, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"true"}}); err == nil {
		e.Errorf("a command still runs beside an entrypoint that has ended: %+v", res)
	}
	if r := e.teardown(h); !r.EndedAt.Equal(o.EndedAt) {
		e.Errorf("the report says that it ended at %s, status said %s", r.EndedAt, o.EndedAt)
	}
}
