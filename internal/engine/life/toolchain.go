package life

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// stepTime limits one command of a create that names no timeout.
const stepTime = 20 * time.Minute

// What runs before an end is best effort; these limits keep it from delaying the end.
const (
	releaseStep = 60 * time.Second  // a command that names no timeout
	releaseAll  = 120 * time.Second // all of them
)

// equips reports whether commands run before a sandbox counts as ready.
func equips(t extensions.Toolchain) bool { return len(t.Install)+len(t.PostAcquire) > 0 }

// equip makes a provisioned sandbox ready: it waits for the place, runs the toolchain, and waits again,
// with the readiness probe, whose answer may depend on what was installed, and for services that stopped
// meanwhile. obs is the answer to provisioning.
func (c *creation) equip(ctx context.Context, b *place.Backend, spec extensions.Spec,
	obs extensions.Observation) (extensions.Observation, error) {
	first, equipped := spec, equips(spec.Toolchain)
	if equipped {
		first.Readiness, first.Settle = nil, 0
	}
	if obs.Phase != extensions.PhaseReady {
		var err error
		if obs, err = b.WaitReady(ctx, first, c.made); err != nil {
			return obs, err
		}
	}
	if err := c.allocated(ctx, obs); err != nil || !equipped {
		return obs, err
	}
	steps, err := c.steps(ctx, b, spec)
	if err != nil {
		return obs, err
	}
	for _, s := range steps {
		c.Notify.Tell(fmt.Sprintf("Running %s %d of %d", s.list, s.n, s.of), "%s", s.shown())
		if err := runStep(ctx, b, c.made, spec, s); err != nil {
			return obs, err
		}
	}
	return b.WaitReady(ctx, spec, c.made)
}

// step is one command of a toolchain, with the list that it is from.
type step struct {
	extensions.Step
	list  string // install | post_acquire | pre_release
	n, of int    // position in its list, from 1
}

func stepsOf(list string, steps []extensions.Step) []step {
	out := make([]step, len(steps))
	for i, s := range steps {
		out[i] = step{s, list, i + 1, len(steps)}
	}
	return out
}

// steps returns the commands of a create. What a snapshot of the whole file system contains is not
// installed again; its workspace is acquired anew.
func (c *creation) steps(ctx context.Context, b *place.Backend, spec extensions.Spec) ([]step, error) {
	after := stepsOf("post_acquire", spec.Toolchain.PostAcquire)
	if spec.FromSnapshot != nil && len(spec.Toolchain.Install) > 0 {
		kind, err := c.snapshotKind(ctx, b, spec.FromSnapshot.Handle)
		if err != nil || holdsTools(kind) {
			return after, err
		}
	}
	if spec.FromSandbox != "" { // a fork is a complete copy of the other one
		return after, nil
	}
	return append(stepsOf("install", spec.Toolchain.Install), after...), nil
}

func holdsTools(kind string) bool { return kind == "filesystem" || kind == "memory" }

func (c *creation) snapshotKind(ctx context.Context, b *place.Backend, h extensions.SnapshotHandle) (string, error) {
	if s := c.decision.Evidence.Snapshot; s != nil && s.Kind != "" {
		return s.Kind, nil
	}
	s, err := b.StatSnapshot(ctx, h)
	return string(s.Kind), err
}

// shown returns a command for a message: its first line, shortened.
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
	code, err := execStep(ctx, b, h, insideOf(spec), place.Command{Op: "toolchain"}, s, limit, out)
	if err == nil && code == 0 {
		return nil
	}
	what := fmt.Sprintf("toolchain.%s %d of %d (%s)", s.list, s.n, s.of, s.shown())
	words := out.lines(b.Redactor(h.ID, nil))
	failed := func(err error) error { return b.Classify("toolchain", h.ID, err) }
	switch {
	case err == nil:
		return failed(extensions.Errorf(extensions.KindFailed, "%s ended with exit code %d%s", what, code, words).WithRemedy("%s",
			stepRemedy(spec)))
	case extensions.IsKind(err, extensions.KindTimeout):
		return failed(extensions.Errorf(extensions.KindTimeout, "%s: %w%s", what, err, words).
			WithRemedy("make it faster, or raise its timeout or timeouts.create"))
	}
	return extensions.Errorf(extensions.KindOf(err), "%s: %w", what, err).WithRemedy("%s", extensions.RemedyOf(err))
}

// stepRemedy names the usual cause that the output does not.
func stepRemedy(spec extensions.Spec) string {
	text := "fix the command in the profile or its kit, or its input files"
	if spec.Network.Needs() != extensions.EgressNone {
		text += "; the network is denied by default: add its download sources to network.egress"
	}
	return text
}

// execStep runs the command with the sandbox's shell in the workspace, both streams combined.
func execStep(ctx context.Context, b *place.Backend, h extensions.Handle, in inside, cmd place.Command, s step, limit time.Duration,
	out *tail) (code int, err error) {
	cmd.ExecRequest = in.wrap(extensions.ExecRequest{Shell: "exec 2>&1\n" + s.Run, Stdout: out, Stderr: out, Timeout: limit})
	res, err := b.Exec(ctx, h, cmd)
	return res.ExitCode, err
}

// farewell does what a sandbox needs while it is still whole: it runs its pre_release commands, then
// brings its mirrored workspace back. Only the latter can stop the end.
func (m *Manager) farewell(ctx context.Context, b *place.Backend, row ledger.Sandbox, last parting, report *DestroyReport,
	notify notice.Notify) error {
	preRelease(ctx, b, row, last, report, notify)
	return m.syncBeforeEnd(ctx, b, row, last.mirror, report)
}

// parting is what a sandbox needs done before it ends.
type parting struct {
	mirror string
	steps  []extensions.Step
	inside inside
}

func (p parting) nothing() bool { return p.mirror == "" && len(p.steps) == 0 }

func (m *Manager) partingOf(row ledger.Sandbox) parting {
	spec := specOf(row)
	return parting{mirror: m.mirrorOf(row), steps: spec.Toolchain.PreRelease, inside: insideOf(spec)}
}

func partingBy(rec plan.Receipt) parting {
	return parting{mirror: rec.Mirror, steps: rec.PreRelease, inside: insideBy(rec)}
}

// releaseTime limits all commands before an end; the end itself needs the other half of the caller's time.
func releaseTime(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(releaseAll, time.Until(end)/2)
	}
	return releaseAll
}

// preRelease runs each command before an end, as far as the limits allow. A failure is reported and stops
// nothing.
func preRelease(ctx context.Context, b *place.Backend, row ledger.Sandbox, last parting, report *DestroyReport, notify notice.Notify) {
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
			return // the end is cancelled too
		case left <= 0:
			report.Notices = append(report.Notices, notice.Notice{Summary: "Some pre_release commands did not run",
				Detail: fmt.Sprintf("Time ran out before toolchain.pre_release %d of %d of %s. The sandbox was destroyed anyway.", s.n, s.of,
					row.ID)})
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
		why += printedBy(limited, b, row, out)
		report.Notices = append(report.Notices, notice.Notice{Summary: "A pre_release command failed",
			Detail: fmt.Sprintf("The sandbox was destroyed anyway. toolchain.pre_release %d of %d of %s (%s) %s", s.n, s.of, row.ID, s.shown(),
				why)})
	}
}
