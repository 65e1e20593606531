package composessh

import (
	"context"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
)

// Teardown implements extensions.Backend with one exec, by the id alone.
func (b *Backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	r, err := b.teardown(ctx, h)
	return r, failed("teardown", h.ID, err)
}

// teardownFiles make up the operation teardown.
var teardownFiles = []string{"lease", "look", "folder", "remove", "memory", "toolbox", "tries", "rules", "deny", "firewall", "proxy",
	"images", "kept", "teardown"}

func (b *Backend) teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	at, err := b.resolve(h)
	if err != nil {
		return extensions.CleanupReport{}, err
	}
	a, err := b.call(ctx, operation{id: at.id, files: teardownFiles, vars: map[string]string{
		"root": at.root, "lock_wait": lockWaitLong, "grace": seconds(b.settings.stopGrace)}})
	if err != nil {
		return extensions.CleanupReport{}, err
	}
	r := extensions.CleanupReport{AlreadyGone: a.Gone, Removed: strings.Fields(extensions.Clean(a.Removed, maxMessage)),
		StartedAt: fromMillis(a.Started), EndedAt: fromMillis(a.Ended)}
	for line := range strings.Lines(a.Warnings) {
		r.Residue = append(r.Residue, extensions.Clean(strings.TrimSpace(line), maxMessage))
	}
	if at := hostTime(oneExit(a.Exits).at, a.ClockCaller, a.ClockWall); !at.IsZero() {
		r.EndedAt = at
	}
	if !r.StartedAt.IsZero() && r.EndedAt.Before(r.StartedAt) {
		r.EndedAt = r.StartedAt
	}
	if !r.StartedAt.IsZero() {
		paused := min(max(time.Duration(a.PausedMS)*time.Millisecond, 0), r.EndedAt.Sub(r.StartedAt))
		r.Usage = &extensions.Usage{StartedAt: r.StartedAt, EndedAt: r.EndedAt, Running: r.EndedAt.Sub(r.StartedAt) - paused, Paused: paused}
	}
	return r, nil
}

// seconds rounds up to whole seconds, docker stop's unit.
func seconds(d time.Duration) string { return formatInt(deadline.Up(d, time.Second)) }
