package composessh

import (
	"context"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Teardown implements extensions.Backend: one exec, by the id alone.
func (b *Backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	r, err := b.teardown(ctx, h)
	return r, failed("teardown", h.ID, err)
}

// teardownFiles are what the operation teardown is put together from.
var teardownFiles = []string{"lease", "look", "remove", "memory", "toolbox", "deny", "firewall", "proxy", "images", "teardown"}

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
	if !r.StartedAt.IsZero() && r.EndedAt.Before(r.StartedAt) {
		r.EndedAt = r.StartedAt
	}
	if !r.StartedAt.IsZero() {
		r.Usage = &extensions.Usage{StartedAt: r.StartedAt, EndedAt: r.EndedAt, Running: r.EndedAt.Sub(r.StartedAt)}
	}
	return r, nil
}

// seconds rounds up to whole seconds, the unit of docker stop.
func seconds(d time.Duration) string { return formatInt(int64((d + time.Second - 1) / time.Second)) }
