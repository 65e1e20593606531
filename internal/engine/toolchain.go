package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// stepTime bounds one command of a create that names no timeout.
const stepTime = 20 * time.Minute

// What runs before an end is best effort: its bounds keep an end from being held up.
const (
	releaseStep = 60 * time.Second  // one command that names no timeout
	releaseAll  = 120 * time.Second // all of them
)

// equips reports whether commands run before a sandbox counts as ready.
func equips(t extensions.Toolchain) bool { return len(t.Install)+len(t.PostAcquire) > 0 }

// equip makes what was provisioned ready: it waits for the place, runs the
// toolchain, and waits again, with the readiness probe, whose answer may rest on
// what was installed, and for services that ended meanwhile. obs is what
// provisioning answered.
func (c *creation) equip(ctx context.Context, b *place.Backend, spec extensions.Spec, obs extensions.Observation) (extensions.Reachability, error) {
	if !equips(spec.Toolchain) {
		if obs.Phase == extensions.PhaseReady {
			return obs.Reachability, nil
		}
		return b.WaitReady(ctx, spec, c.made)
	}
	reach, usable := obs.Reachability, spec
	usable.Readiness, usable.Settle = nil, 0
	var err error
	if obs.Phase != extensions.PhaseReady {
		if reach, err = b.WaitReady(ctx, usable, c.made); err != nil {
			return reach, err
		}
	}
	steps, err := c.steps(ctx, b, spec)
	if err != nil {
		return reach, err
	}
	for _, s := range steps {
		c.Notify.Tell(fmt.Sprintf("Running %s %d of %d", s.list, s.n, s.of), "%s", s.shown())
		if err := runStep(ctx, b, c.made, spec, s); err != nil {
			return reach, err
		}
	}
	return b.WaitReady(ctx, spec, c.made)
}

// step is one command of a toolchain and the list it is from.
type step struct {
	extensions.Step
	list  string // install | post_acquire | pre_release
	n, of int    // in its list, from 1
}

func stepsOf(list string, steps []extensions.Step) []step {
	out := make([]step, len(steps))
	for i, s := range steps {
		out[i] = step{s, list, i + 1, len(steps)}
	}
	return out
}

// steps are the commands of a create. What a snapshot of the whole file
// system brings is not installed again; its workspace is acquired anew.
func (c *creation) steps(ctx context.Context, b *place.Backend, spec extensions.Spec) ([]step, error) {
	after := stepsOf("post_acquire", spec.Toolchain.PostAcquire)
	if spec.FromSnapshot != nil && len(spec.Toolchain.Install) > 0 {
		kind, err := c.snapshotKind(ctx, b, spec.FromSnapshot.Handle)
		if err != nil || holdsTools(kind) {
			return after, err
		}
	}
	if spec.FromSandbox != "" { // a fork is the whole of the other one
		return after, nil
	}
	return append(stepsOf("install", spec.Toolchain.Install), after...), nil
}

func holdsTools(kind string) bool { return kind == "filesystem" || kind == "memory" }

func (c *creation) snapshotKind(ctx context.Context, b *place.Backend, h extensions.SnapshotHandle) (string, error) {
	if s := c.p.snapshot; s != nil && s.Kind != "" {
		return s.Kind, nil
	}
	s, err := b.StatSnapshot(ctx, h)
	return s.Kind, err
}

// shown is a command in a message: its first line, not too long.
func (s step) shown() string {
	first, rest, _ := strings.Cut(strings.TrimSpace(s.Run), "\n")
	if strings.TrimSpace(rest) != "" {
		first = strings.TrimSpace(first) + " …"
	}
	return extensions.Clean(first, 120)
}

// runStep runs one command of a create to its end.
func runStep(ctx context.Context, b *place.Backend, h extensions.Handle, spec extensions.Spec, s step) error {
	limit := stepTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(end), time.Second))
	}
	if own := time.Duration(s.Timeout); own > 0 {
		limit = min(limit, own)
	}
	out := &tail{}
	code, err := execStep(ctx, b, h, insideOf(spec), place.Command{Op: "toolchain", Secrets: spec.Secrets}, s, limit, out)
	if err == nil && code == 0 {
		return nil
	}
	what := fmt.Sprintf("toolchain.%s %d of %d (%s)", s.list, s.n, s.of, s.shown())
	words := out.lines(func(text string) string { return b.Redact(text, spec.Secrets) })
	failed := func(err error) error { return b.Classify("toolchain", h.ID, spec.Secrets, err) }
	switch {
	case err == nil:
		return failed(extensions.Errorf(extensions.KindFailed, "%s ended with exit code %d%s", what, code, words).WithRemedy("%s", stepRemedy(spec)))
	case extensions.IsKind(err, extensions.KindTimeout):
		return failed(extensions.Errorf(extensions.KindTimeout, "%s: %w%s", what, err, words).
			WithRemedy("make it faster, or give it more time: a timeout of its own, timeouts.create"))
	}
	return extensions.Errorf(extensions.KindOf(err), "%s: %w", what, err).WithRemedy("%s", extensions.RemedyOf(err))
}

// stepRemedy names the usual cause that the output does not.
func stepRemedy(spec extensions.Spec) string {
	text := "correct the command in the profile or its kit, or what it works on"
	if spec.Network.Needs() != extensions.EgressNone {
		text += "; the network is denied by default: what it downloads from must be in network.egress"
	}
	return text
}

// execStep runs the command by the sandbox's shell in the workspace, both of
// its streams as one.
func execStep(ctx context.Context, b *place.Backend, h extensions.Handle, in inside, cmd place.Command, s step, limit time.Duration, out *tail) (code int, err error) {
	cmd.ExecRequest = in.wrap(ExecRequest{Shell: "exec 2>&1\n" + s.Run, Stdout: out, Stderr: out, Timeout: limit})
	res, err := b.Exec(ctx, h, cmd)
	return res.ExitCode, err
}

// farewell is what is done for a sandbox that is still whole before it ends:
// its pre_release commands, then its mirrored workspace comes back. Only the
// latter can stop the end.
func (e *Engine) farewell(ctx context.Context, b *place.Backend, row ledger.Sandbox, last parting, report *DestroyReport, notify Notify) error {
	preRelease(ctx, b, row, last, report, notify)
	return e.syncBeforeEnd(ctx, b, row, last.mirror, report)
}

// parting is what a sandbox asks for before it ends.
type parting struct {
	mirror string
	steps  []extensions.Step
	inside inside
	// quiet: what the commands print may hold secrets, which nobody here knows.
	quiet bool
}

func (p parting) nothing() bool { return p.mirror == "" && len(p.steps) == 0 }

func (e *Engine) partingOf(row ledger.Sandbox) parting {
	spec := specOf(row)
	return parting{mirror: e.mirrorOf(row), steps: spec.Toolchain.PreRelease, inside: insideOf(spec), quiet: len(spec.SecretNames) > 0}
}

func (r Receipt) parting() parting {
	return parting{mirror: r.Mirror, steps: r.PreRelease, inside: r.inside(), quiet: true}
}

// releaseTime is how long all commands for an end may take: the end itself
// needs the other half of a caller's time.
func releaseTime(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(releaseAll, time.Until(end)/2)
	}
	return releaseAll
}

// preRelease runs the commands for an end, each of them, as far as the bounds
// allow. A failure is told and stops nothing.
func preRelease(ctx context.Context, b *place.Backend, row ledger.Sandbox, last parting, report *DestroyReport, notify Notify) {
	if len(last.steps) == 0 || row.Handle.IsZero() {
		return
	}
	if o, err := b.Look(ctx, row.Handle); err != nil || o.Phase != extensions.PhaseReady {
		return
	}
	limited, cancel := context.WithTimeout(ctx, releaseTime(ctx))
	defer cancel()
	for _, s := range stepsOf("pre_release", last.steps) {
		end, _ := limited.Deadline()
		left := time.Until(end)
		switch {
		case ctx.Err() != nil:
			return // and so is the end itself
		case left <= 0:
			report.Notices = append(report.Notices, Notice{Summary: "Not every pre_release command was run",
				Detail: fmt.Sprintf("The time for them was over before toolchain.pre_release %d of %d of %s. The sandbox was ended all the same.", s.n, s.of, row.ID)})
			return
		}
		notify.Tell(fmt.Sprintf("Running pre_release %d of %d", s.n, s.of), "%s", s.shown())
		limit := releaseStep
		if s.Timeout > 0 {
			limit = time.Duration(s.Timeout)
		}
		limit = min(limit, left)
		out := &tail{}
		code, err := execStep(limited, b, row.Handle, last.inside, place.Command{Op: "pre-release"}, s, limit, out)
		if err == nil && code == 0 {
			continue
		}
		why := fmt.Sprintf("ended with exit code %d", code)
		if err != nil {
			why = "failed: " + extensions.Clean(err.Error(), 300)
		}
		if last.quiet {
			why += "; what it printed is not shown, as it may hold the sandbox's secrets"
		} else {
			why += out.lines(func(text string) string { return b.Redact(text, nil) })
		}
		report.Notices = append(report.Notices, Notice{Summary: "A pre_release command failed",
			Detail: fmt.Sprintf("The sandbox was ended all the same. toolchain.pre_release %d of %d of %s (%s) %s", s.n, s.of, row.ID, s.shown(), why)})
	}
}
