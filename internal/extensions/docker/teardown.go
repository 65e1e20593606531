package docker

import (
	"context"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Teardown implements extensions.Backend.
func (b *Backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	r, err := b.teardown(ctx, h)
	return r, failed("teardown", h.ID, sent(err))
}

func (b *Backend) teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	var report extensions.CleanupReport
	if err := ctx.Err(); err != nil {
		return report, err
	}
	if err := b.resolve(ctx, h); err != nil {
		return report, err
	}
	found, err := b.lookEverywhere(ctx, h.ID)
	switch {
	case err != nil:
		return report, err
	case found.strange != "":
		return report, extensions.Errorf(extensions.KindConflict, "%s", found.strange)
	case found.none():
		report.AlreadyGone = true // a killed run may have left its images
		return report, b.sweepImages(ctx)
	}
	if agent := found.agent(); agent.ID != "" {
		report.StartedAt = time.Unix(agent.Created, 0).UTC()
		if agent.State != container.StateRunning && agent.State != container.StatePaused {
			end, _ := b.ended(ctx, agent.ID)
			report.EndedAt = end.at
		}
		u := b.measured(ctx, h, found)
		report.Usage = &u
	}
	report.AlreadyGone = len(found.all()) == 0 // a killed run left the rest
	b.step("remove")
	stopped, err := b.remove(ctx, found)
	if err != nil {
		return report, err
	}
	if err := b.sweep(ctx, h.ID, hold{}); err != nil {
		return report, err
	}
	b.step("removed")
	pruned, residue, err := b.release(ctx, strings.Fields(found.agent().Labels[labelImages]))
	if err != nil {
		return report, err
	}
	report.Residue = residue
	if report.EndedAt.Before(report.StartedAt) {
		report.EndedAt = stopped
	}
	if u := report.Usage; u != nil {
		u.EndedAt, u.Running = report.EndedAt, max(report.EndedAt.Sub(u.StartedAt), 0)
	}
	left, err := b.lookEverywhere(ctx, h.ID)
	if err == nil && !left.none() {
		err = extensions.Errorf(extensions.KindUnavailable, "%d containers, %d networks and %d images are still there", len(left.all()),
			len(left.networks), len(left.kept.tags))
	}
	report.Removed = []string{"containers"}
	if len(found.networks) > 0 {
		report.Removed = append(report.Removed, "network")
	}
	if pruned {
		report.Removed = append(report.Removed, "images")
	}
	return report, err
}
