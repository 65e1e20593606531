package conformance

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// heldLonger is how much longer a command takes that a pause holds: more than the command itself.
const heldLonger = 2 * time.Second

var pauseChecks = []check{
	{name: "pause/pauses-and-resumes", shares: true, power: extensions.PowerPause, run: func(e *env) {
		spec, h, _ := e.ready()
		for range 2 {
			e.pause(h)
			e.resume(h, spec.Deadline)
		}
	}},
	{name: "pause/idempotent", shares: true, power: extensions.PowerPause, run: func(e *env) {
		spec, h, _ := e.ready()
		e.resume(h, spec.Deadline)
		first := e.pause(h)
		if again := e.pause(h); !again.Since.Equal(first.Since) {
			e.Errorf("the second pause says it is paused since %s, the first said %s", again.Since, first.Since)
		}
		e.resume(h, spec.Deadline)
		e.resume(h, spec.Deadline)
	}},
	{name: "pause/says-since-when", shares: true, power: extensions.PowerPause, run: func(e *env) {
		spec, h, _ := e.ready()
		within := func(what string, o extensions.Observation, began time.Time) {
			const clocks = 2 * time.Second // between the place's and ours
			if o.Since.IsZero() {
				return // the place does not tell
			}
			if o.Since.Before(began.Add(-clocks)) || o.Since.After(time.Now().Add(clocks)) {
				e.Errorf("%s since %s, want between %s and now", what, o.Since, began)
			}
			if seen := e.observeOn(e.openAs(e.cfg), h); !seen.Since.Equal(o.Since) {
				e.Errorf("%s since %s, another process is told %s", what, o.Since, seen.Since)
			}
		}
		began := time.Now()
		paused := e.pause(h)
		within("paused", paused, began)
		resumed := e.resume(h, spec.Deadline)
		within("resumed", resumed, began)
		if !resumed.Since.IsZero() && !resumed.Since.After(paused.Since) {
			e.Errorf("resumed since %s, paused since %s", resumed.Since, paused.Since)
		}
	}},
	{name: "pause/holds-what-runs", shares: true, power: extensions.PowerPause, also: []extensions.Power{extensions.PowerExec},
		run: func(e *env) {
			if e.desc.Pauses.EndsWhatRuns {
				return
			}
			spec, h, _ := e.ready()
			heard, ended := e.running(h, "echo on; sleep 1; echo off")
			e.pause(h)
			time.Sleep(time.Second + heldLonger)
			if heard.has("off") {
				e.Error("a command went on while its sandbox was paused")
			}
			e.resume(h, spec.Deadline)
			// Its connection may have broken meanwhile, but nobody may be told that it was never started.
			if err := <-ended; err != nil {
				e.wantKind("a command that was held", err, extensions.KindIndeterminate)
			} else if !heard.has("off") {
				e.Error("a command that was held did not go on")
			}
		}},
	{name: "pause/ends-what-runs-as-declared", shares: true, power: extensions.PowerPause, also: []extensions.Power{extensions.PowerExec},
		run: func(e *env) {
			if !e.desc.Pauses.EndsWhatRuns {
				return
			}
			spec, h, _ := e.ready()
			heard, ended := e.running(h, "echo on; sleep 4; echo off; printf x >>ran")
			e.pause(h)
			e.resume(h, spec.Deadline)
			began := time.Now()
			if err := <-ended; err == nil {
				e.Error("a command that ran is told of as if it had ended by itself")
			} else {
				e.wantKind("a command that ran", err, extensions.KindIndeterminate)
			}
			if took := time.Since(began); took > e.h.limit() {
				e.Errorf("the end of a command was told %s after the resume", took)
			}
			time.Sleep(time.Until(began.Add(4*time.Second + heldLonger)))
			if heard.has("off") || e.sh(h, "cat ran 2>/dev/null || printf not") != "not" {
				e.Error("a command goes on, or was begun again, where a pause is said to end it")
			}
		}},
	{name: "pause/keeps-the-files", shares: true, power: extensions.PowerPause, also: []extensions.Power{extensions.PowerExec},
		run: func(e *env) {
			spec, h, _ := e.ready()
			e.sh(h, "printf kept >f")
			e.pause(h)
			e.resume(h, spec.Deadline)
			if got := e.sh(h, "cat f"); got != "kept" {
				e.Errorf("the file reads %q", got)
			}
		}},
	{name: "pause/refuses-use", shares: true, power: extensions.PowerPause, run: func(e *env) {
		spec, h, _ := e.ready()
		e.pause(h)
		uses := map[string]func() error{}
		if e.desc.Has(extensions.PowerExec) {
			uses["exec"] = func() error {
				_, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Command: []string{"true"}})
				return err
			}
		}
		if e.desc.Has(extensions.PowerFiles) {
			uses["upload"] = func() error {
				return power[extensions.FileTransfer](e, e.b).Upload(e.ctx(), h, "", bytes.NewReader(pack(nil, nil)))
			}
			uses["download"] = func() error { return power[extensions.FileTransfer](e, e.b).Download(e.ctx(), h, "", io.Discard) }
		}
		if e.desc.Has(extensions.PowerPorts) {
			uses["dial"] = func() error {
				c, err := power[extensions.PortForwarder](e, e.b).Dial(e.ctx(), h, "", 80)
				if err == nil {
					_ = c.Close()
				}
				return err
			}
		}
		for what, use := range uses {
			err := use()
			e.wantKind(what+" in a paused sandbox", err, extensions.KindConflict)
			if extensions.RemedyOf(err) == "" {
				e.Errorf("%s in a paused sandbox: no word on what to do", what)
			}
			e.wantPhase(h, extensions.PhasePaused)
		}
		e.resume(h, spec.Deadline)
	}},
	{name: "pause/refuses-a-url", shares: true, power: extensions.PowerPause, also: []extensions.Power{extensions.PowerURL},
		run: func(e *env) {
			spec, h, _ := e.ready()
			e.pause(h)
			_, err := power[extensions.URLGiver](e, e.b).URL(e.ctx(), h, urlPort)
			e.wantKind("a URL of a paused sandbox", err, extensions.KindConflict)
			if extensions.RemedyOf(err) == "" {
				e.Error("a URL of a paused sandbox: no word on what to do")
			}
			e.wantPhase(h, extensions.PhasePaused)
			e.resume(h, spec.Deadline)
		}},
	{name: "pause/works-in-another-process", shares: true, power: extensions.PowerPause, run: func(e *env) {
		spec, h, _ := e.ready()
		e.pause(h)
		e.settle()
		other := e.openAs(e.cfg)
		if o, ok := e.list(other)[h.ID]; !ok || o.Phase != extensions.PhasePaused {
			e.Errorf("another process lists it as %q", o.Phase)
		}
		if o, err := power[extensions.Pauser](e, other).Resume(e.ctx(), h, spec.Deadline); err != nil || o.Phase != extensions.PhaseReady {
			e.Fatalf("resume by another process: %s, %v", o.Phase, err)
		}
		e.wantPhase(h, extensions.PhaseReady)
	}},
	{name: "pause/ends-at-its-deadline", power: extensions.PowerPause, run: func(e *env) {
		if e.desc.Capabilities.PausedExpiry == extensions.ExpirySweep {
			return
		}
		spec, h := e.brief()
		e.pause(h)
		e.wantExpiry(h, life(spec))
	}},
	{name: "pause/set-generation", shares: true, power: extensions.PowerPause, also: []extensions.Power{extensions.PowerGenerationSet},
		run: func(e *env) {
			spec, h, _ := e.ready()
			e.pause(h)
			if err := power[extensions.GenerationSetter](e, e.b).SetGeneration(e.ctx(), h, 5); err != nil {
				e.Fatalf("set the generation of a paused one: %v", err)
			}
			if o := e.wantPhase(h, extensions.PhasePaused); o.Generation != 5 {
				e.Errorf("generation %d, want 5", o.Generation)
			}
			e.resume(h, spec.Deadline)
		}},
	{name: "pause/snapshot", shares: true, power: extensions.PowerPause, also: []extensions.Power{extensions.PowerSnapshot},
		run: func(e *env) {
			spec, h, _ := e.ready()
			e.pause(h)
			if e.desc.Snapshots.RunningOnly {
				_, err := e.snapshotter().Snapshot(e.ctx(), h, extensions.SnapshotSpec{ID: e.newSnapshotID(), Account: e.cfg.Account})
				e.wantKind("snapshot of a paused sandbox", err, extensions.KindConflict)
			} else {
				e.snapshot(e.snapshotter(), h)
			}
			e.wantPhase(h, extensions.PhasePaused)
			e.resume(h, spec.Deadline)
		}},
	{name: "pause/resume-sets-the-deadline", shares: true, power: extensions.PowerPause, run: func(e *env) {
		if e.desc.Capabilities.Expiry == extensions.ExpirySweep {
			return
		}
		spec, h, _ := e.ready()
		e.pause(h)
		to := spec.Deadline
		if e.desc.Capabilities.ExtendTTL != extensions.ExtendNone {
			to = to.Add(sandboxTTL / 4)
		}
		e.resume(h, to)
		e.wantEnd(h, to)
	}},
	{name: "pause/extends", shares: true, power: extensions.PowerPause, also: []extensions.Power{extensions.PowerExtend}, run: func(e *env) {
		if e.desc.Capabilities.PausedExpiry == extensions.ExpirySweep {
			return
		}
		spec, h, _ := e.ready()
		e.pause(h)
		to := spec.Deadline.Add(sandboxTTL / 2)
		if err := power[extensions.Extender](e, e.b).Extend(e.ctx(), h, to); err != nil {
			e.Fatalf("extend a paused one: %v", err)
		}
		e.wantEnd(h, to)
		e.wantPhase(h, extensions.PhasePaused)
		e.resume(h, to)
	}},
	{name: "pause/teardown", shares: true, power: extensions.PowerPause, run: func(e *env) {
		_, h, _ := e.ready()
		e.pause(h)
		if r := e.teardown(h); r.AlreadyGone {
			e.Error("the teardown of a paused one found nothing")
		}
		e.wantPhase(h, extensions.PhaseAbsent)
	}},
	{name: "pause/gone-is-not-found", shares: true, power: extensions.PowerPause, run: func(e *env) {
		h := e.gone()
		p := power[extensions.Pauser](e, e.b)
		_, err := p.Pause(e.ctx(), h)
		e.wantKind("pause of what is gone", err, extensions.KindNotFound)
		_, err = p.Resume(e.ctx(), h, time.Now().Add(time.Hour))
		e.wantKind("resume of what is gone", err, extensions.KindNotFound)
	}},
}

// running starts a script that prints "on" first, and returns what it prints and how its call ends.
func (e *env) running(h extensions.Handle, script string) (heard *output, ended <-chan error) {
	e.Helper()
	heard, over := &output{}, make(chan error, 1)
	go func() {
		_, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Stdout: heard, Command: []string{"sh", "-c", script}})
		over <- err
	}()
	for started := time.Now(); !heard.has("on"); time.Sleep(10 * time.Millisecond) {
		if time.Since(started) > 30*time.Second {
			e.Fatal("the command printed nothing")
		}
	}
	return heard, over
}

func (e *env) pause(h extensions.Handle) extensions.Observation {
	e.Helper()
	o, err := power[extensions.Pauser](e, e.b).Pause(e.ctx(), h)
	return e.changedMode("pause", h, o, err, extensions.PhasePaused)
}

func (e *env) resume(h extensions.Handle, deadline time.Time) extensions.Observation {
	e.Helper()
	o, err := power[extensions.Pauser](e, e.b).Resume(e.ctx(), h, deadline)
	return e.changedMode("resume", h, o, err, extensions.PhaseReady)
}

// changedMode checks that a change of mode worked, and says what Status says.
func (e *env) changedMode(what string, h extensions.Handle, o extensions.Observation, err error,
	want extensions.Phase) extensions.Observation {
	e.Helper()
	if err != nil {
		e.Fatalf("%s: %v", what, err)
	}
	if o.ID != h.ID || o.Phase != want {
		e.Errorf("%s observed %s as %s, want %s as %s", what, o.ID, o.Phase, h.ID, want)
	}
	e.wantPhase(h, want)
	return o
}

// output collects output that several goroutines read and write.
type output struct {
	mu  sync.Mutex
	all strings.Builder
}

func (h *output) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.Write(p)
}

func (h *output) has(word string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(h.all.String(), word)
}
