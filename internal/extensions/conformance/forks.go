package conformance

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var execToo = []extensions.Power{extensions.PowerExec}

var forkChecks = []check{
	{name: "fork/checking-makes-nothing", shares: true, power: extensions.PowerFork, run: func(e *env) {
		_, h, _ := e.ready()
		if err := power[extensions.Forker](e, e.b).CanFork(e.ctx(), h); err != nil {
			e.Fatalf("can fork: %v", err)
		}
		if all := e.list(e.b); len(all) != 1 {
			e.Errorf("%d sandboxes exist, want 1", len(all))
		}
	}},
	{name: "fork/copies", shares: true, power: extensions.PowerFork, also: execToo, run: func(e *env) {
		_, h, _ := e.ready()
		e.sh(h, "mkdir -p d && printf before >d/f && ln -s d/f l")
		_, forked := e.fork(h)
		if got := e.sh(forked, "cat l"); got != "before" {
			e.Errorf("the fork reads %q", got)
		}
	}},
	{name: "fork/copies-the-home", shares: true, power: extensions.PowerFork, also: execToo, run: func(e *env) {
		_, h, _ := e.ready()
		e.sh(h, `printf tool >"$HOME/f"`)
		_, forked := e.fork(h)
		if got := e.sh(forked, `cat "$HOME/f"`); got != "tool" {
			e.Errorf("what was installed in the home reads %q in the fork", got)
		}
	}},
	{name: "fork/writes-apart", shares: true, power: extensions.PowerFork, also: execToo, run: func(e *env) {
		_, h, _ := e.ready()
		e.sh(h, "rm -rf d && mkdir d && printf 1 >d/a && printf 1 >d/b && printf 1 >d/c")
		_, forked := e.fork(h)
		e.sh(h, "cd d; printf s >>a; printf s >s; rm b") // in place: no two files may be one
		e.sh(forked, "cd d; printf f >>a; printf f >f; rm c")
		if got := e.sh(h, "cd d; cat a c; test -e f && printf ' other'; test -e b && printf ' b'; cat s"); got != "1s1s" {
			e.Errorf("the source reads %q", got)
		}
		if got := e.sh(forked, "cd d; cat a b; test -e s && printf ' other'; test -e c && printf ' c'; cat f"); got != "1f1f" {
			e.Errorf("the fork reads %q", got)
		}
	}},
	{name: "fork/leaves-its-source-running", shares: true, power: extensions.PowerFork, also: execToo, run: func(e *env) {
		spec, h, _ := e.ready()
		_, ended := e.running(h, "rm -f f; echo on; sleep 1; echo off; printf done >f")
		e.fork(h)
		if err := <-ended; err != nil { // its connection may have broken meanwhile
			e.wantKind("a command of the source", err, extensions.KindIndeterminate)
		}
		if got := e.soon(h, "f"); got != "done" {
			e.Error("a command of the source did not go on")
		}
		if o := e.wantPhase(h, extensions.PhaseReady); o.Generation != spec.Generation {
			e.Errorf("the source has generation %d, want %d", o.Generation, spec.Generation)
		}
	}},
	{name: "fork/is-found-by-its-own-id", shares: true, power: extensions.PowerFork, run: func(e *env) {
		_, h, _ := e.ready()
		spec, forked := e.fork(h, With(func(s *extensions.Spec) { s.Generation = 5 }))
		e.settle()
		for _, want := range []extensions.Handle{h, forked} {
			if found, err := e.b.Find(e.ctx(), want.ID); e.desc.Find.Recoverable() && (err != nil || found.Encode() != want.Encode()) {
				e.Errorf("find of %s: %s, %v", want.ID, found.Encode(), err)
			}
		}
		all := e.list(e.openAs(e.cfg))
		if o := all[spec.ID]; len(all) != 2 || o.Phase != extensions.PhaseReady || o.Generation != 5 {
			e.Errorf("%d sandboxes are listed, the fork %s in generation %d", len(all), o.Phase, o.Generation)
		}
	}},
	{name: "fork/has-its-own-deadline", shares: true, power: extensions.PowerFork, run: func(e *env) {
		if e.desc.Capabilities.Expiry == extensions.ExpirySweep {
			return
		}
		source, h, _ := e.ready()
		spec, forked := e.fork(h, WithTTL(sandboxTTL/2))
		e.wantEnd(forked, spec.Deadline)
		e.wantEnd(h, source.Deadline)
	}},
	{name: "fork/gets-its-own-environment", power: extensions.PowerFork, also: execToo, run: func(e *env) {
		_, h, _ := e.ready(WithEnv("WORD", "source"), With(func(s *extensions.Spec) { s.Instructions = "source" }))
		_, forked := e.fork(h, WithEnv("WORD", "fork"), With(func(s *extensions.Spec) { s.Instructions = "fork" }))
		if got := e.sh(forked, `printf %s "$WORD"`); got != "fork" {
			e.Errorf("the variable of the fork is %q", got)
		}
		if got := e.sh(forked, "cat "+extensions.InstructionsPath); got != "fork" {
			e.Errorf("the instructions of the fork are %q", got)
		}
		if got := e.sh(h, `printf %s "$WORD"; cat `+extensions.InstructionsPath); got != "sourcesource" {
			e.Errorf("the variable and the instructions of the source are now %q", got)
		}
	}},
	{name: "fork/gives-secrets-anew", power: extensions.PowerFork, also: execToo, secretsAs: extensions.SecretsEnv, run: func(e *env) {
		_, h, _ := e.ready(WithSecret("BOTH", canary), WithSecret("ONLY", canary))
		_, forked := e.fork(h, WithSecret("BOTH", "anew"))
		if got := e.sh(forked, `printf %s "$BOTH ${ONLY-unset}"`); got != "anew unset" {
			e.Errorf("the fork's secrets are %q", got)
		}
		if got := e.sh(h, `printf %s "$BOTH $ONLY"`); got != canary+" "+canary {
			e.Errorf("the source's secrets are now %q", got)
		}
	}},
	{name: "fork/gives-secret-files-anew", power: extensions.PowerFork, also: execToo, secretsAs: extensions.SecretsFile, run: func(e *env) {
		asFiles := WithSecretsAs(extensions.SecretsFile)
		_, h, _ := e.ready(asFiles, WithSecret("BOTH", canary), WithSecret("ONLY", canary))
		_, forked := e.fork(h, asFiles, WithSecret("BOTH", "anew"))
		if got := e.sh(forked, "cd "+extensions.SecretsDir+"; cat BOTH; cat ONLY 2>/dev/null || printf ' none'"); got != "anew none" {
			e.Errorf("the files of the fork's secrets are %q", got)
		}
	}},
	{name: "fork/of-a-paused-one", shares: true, power: extensions.PowerFork,
		also: []extensions.Power{extensions.PowerPause, extensions.PowerExec}, run: func(e *env) {
			source, h, _ := e.ready()
			e.sh(h, "printf kept >f")
			e.pause(h)
			if e.desc.Forks.RunningOnly {
				e.wantKind("can fork what is paused", power[extensions.Forker](e, e.b).CanFork(e.ctx(), h), extensions.KindConflict)
				e.refused("a fork of what is paused", e.forkSpec(h), extensions.KindConflict)
			} else {
				_, forked := e.fork(h)
				if got := e.sh(forked, "cat f"); got != "kept" {
					e.Errorf("the fork reads %q", got)
				}
			}
			e.wantPhase(h, extensions.PhasePaused)
			e.resume(h, source.Deadline)
		}},
	{name: "fork/five-at-once", shares: true, power: extensions.PowerFork, also: execToo, run: func(e *env) {
		_, h, _ := e.ready()
		e.sh(h, "printf shared >f")
		specs := make([]extensions.Spec, 5)
		handles, errs := make([]extensions.Handle, len(specs)), make([]error, len(specs))
		var wg sync.WaitGroup
		for i := range specs {
			specs[i] = e.forkSpec(h)
			wg.Go(func() { handles[i], errs[i] = e.become(specs[i]) })
		}
		wg.Wait()
		for i, err := range errs {
			e.cleanUp(handles[i])
			if err != nil {
				e.Errorf("fork %d of %d at once: %v", i+1, len(specs), err)
			} else if got := e.sh(handles[i], "printf x >>f; cat f"); got != "sharedx" {
				e.Errorf("fork %d reads %q", i+1, got)
			}
		}
		if all := e.list(e.b); len(all) != len(specs)+1 {
			e.Errorf("%d sandboxes are listed, want %d", len(all), len(specs)+1)
		}
		e.wantPhase(h, extensions.PhaseReady)
	}},
	{name: "fork/of-a-fork", shares: true, power: extensions.PowerFork, also: execToo, run: func(e *env) {
		_, h, _ := e.ready()
		e.sh(h, "printf 1 >f")
		_, child := e.fork(h)
		e.sh(child, "printf 2 >>f")
		_, grandchild := e.fork(child)
		if got := e.sh(grandchild, "cat f"); got != "12" {
			e.Errorf("the fork of a fork reads %q", got)
		}
	}},
	{name: "fork/of-another-account-is-refused", shares: true, power: extensions.PowerFork, run: func(e *env) {
		_, h, _ := e.ready()
		other := &env{TB: e.TB, h: e.h, ext: e.ext, desc: e.desc, cfg: e.cfg}
		other.cfg.Account = "another/account"
		other.open()
		other.refused("a fork of another account's sandbox", other.forkSpec(h), extensions.KindNotFound, extensions.KindConflict)
	}},
	{name: "fork/leaves-nothing", shares: true, power: extensions.PowerFork,
		hook: hookNamed("Residue", func(h Harness) bool { return h.Residue != nil }),
		run: func(e *env) {
			_, h, _ := e.ready()
			before := e.h.Residue(e.TB, e.cfg)
			_, forked := e.fork(h)
			e.teardown(forked)
			e.wantResidue("after a fork and its teardown", before)
			var first []Option // the deadline that the engine sends first
			if claim := e.desc.Find.Claim; claim > 0 {
				first = []Option{WithTTL(claim)}
			}
			for _, after := range []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond} {
				ctx, cancel := context.WithTimeout(e.ctx(), after)
				spec := e.forkSpec(h, first...)
				cut, _, _ := e.b.Provision(ctx, spec)
				cancel()
				if cut.IsZero() {
					e.settle()
					cut, _ = e.b.Find(e.ctx(), spec.ID) // by another process, after this one's death
				}
				if !cut.IsZero() {
					e.endCut(cut)
				}
				e.soonResidue("after a fork that was cut off", before)
			}
			e.wantPhase(h, extensions.PhaseReady)
		}},
	{name: "fork/outlives-its-source", shares: true, power: extensions.PowerFork, also: execToo, run: func(e *env) {
		_, h, _ := e.ready()
		e.sh(h, "printf kept >f")
		spec, forked := e.fork(h)
		e.teardown(h)
		if got := e.sh(forked, "printf x >>f; cat f"); got != "keptx" {
			e.Errorf("without its source the fork reads %q", got)
		}
		e.settle()
		again, _, err := e.b.Provision(e.ctx(), spec)
		if err != nil || again.Encode() != forked.Encode() {
			e.Errorf("the same call again, without the source: %s, %v; want %s", again.Encode(), err, forked.Encode())
		}
		if got := e.sh(forked, "cat f"); got != "keptx" {
			e.Errorf("after the same call again the fork reads %q", got)
		}
	}},
	{name: "fork/gone-is-not-found", shares: true, power: extensions.PowerFork, run: func(e *env) {
		h := e.gone()
		e.wantKind("can fork what is gone", power[extensions.Forker](e, e.b).CanFork(e.ctx(), h), extensions.KindNotFound)
		e.refused("a fork of what is gone", e.forkSpec(h), extensions.KindNotFound)
	}},
}

// endCut ends what a create that was cut off left. Where a look-up can miss it, that is proved only past its first
// deadline.
func (e *env) endCut(h extensions.Handle) {
	e.Helper()
	_, err := e.b.Teardown(e.ctx(), h)
	if h.Ref == "" && e.desc.Find.Strength == extensions.FindEventual && extensions.IsKind(err, extensions.KindIndeterminate) {
		e.advance(e.desc.Find.Claim + e.desc.Find.Settle)
		if h, err = e.b.Find(e.ctx(), h.ID); err == nil {
			_, err = e.b.Teardown(e.ctx(), h)
		}
		if extensions.IsKind(err, extensions.KindIndeterminate) {
			err = nil
		}
	}
	if err != nil {
		e.Fatalf("teardown: %v", err)
	}
}

// forkSpec returns the spec of a fork.
func (e *env) forkSpec(of extensions.Handle, opts ...Option) extensions.Spec {
	e.Helper()
	s := e.spec(opts...)
	s.FromSandbox, s.Source, s.Workspace.Source = of.ID, of, nil
	s.Labels = Labels(s)
	return s
}

// fork forks a sandbox, which must work, and waits until the fork is usable.
func (e *env) fork(of extensions.Handle, opts ...Option) (extensions.Spec, extensions.Handle) {
	e.Helper()
	spec := e.forkSpec(of, opts...)
	h, err := e.become(spec)
	e.cleanUp(h)
	if err != nil {
		e.Fatalf("fork: %v", err)
	}
	return spec, h
}

// become creates a sandbox and waits until it is usable.
func (e *env) become(spec extensions.Spec) (extensions.Handle, error) {
	h, o, err := e.b.Provision(e.ctx(), spec)
	if err == nil && o.Phase != extensions.PhaseReady {
		_, err = e.b.WaitReady(e.ctx(), spec, h)
	}
	return h, err
}

func (e *env) wantResidue(when string, want []string) {
	e.Helper()
	if got, same := e.residueIs(want); !same {
		e.Errorf("%s there is %q, before it was %q", when, got, want)
	}
}

// soonResidue is wantResidue for what was cut off here and may still be ending there.
func (e *env) soonResidue(when string, want []string) {
	e.Helper()
	for end := time.Now().Add(endPatience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, same := e.residueIs(want); same {
			return
		}
	}
	e.wantResidue(when, want)
}

func (e *env) residueIs(want []string) (got []string, same bool) {
	got = e.h.Residue(e.TB, e.cfg)
	slices.Sort(got)
	slices.Sort(want)
	return got, slices.Equal(got, want)
}
