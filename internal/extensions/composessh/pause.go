package composessh

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// pauseFiles make up the operations pause and resume.
var pauseFiles = []string{"lease", "look", "timer", "toolbox", "take", "hold", "pause"}

// Pause implements extensions.Pauser with the engine's freezer: each container of the stack, under the
// sandbox's lock. The host's loop ends a paused one at its deadline like any other.
func (b *Backend) Pause(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.setMode(ctx, h, map[string]string{"mode": "paused", "remaining": "", "until": ""})
	return o, failed("pause", h.ID, err)
}

// Resume implements extensions.Pauser.
func (b *Backend) Resume(ctx context.Context, h extensions.Handle, deadline time.Time) (extensions.Observation, error) {
	o, err := b.setMode(ctx, h, map[string]string{"mode": "running",
		"remaining": centis(max(time.Until(deadline), 0)), "until": deadline.UTC().Format(time.RFC3339Nano)})
	return o, failed("resume", h.ID, err)
}

func (b *Backend) setMode(ctx context.Context, h extensions.Handle, vars map[string]string) (extensions.Observation, error) {
	at, err := b.resolve(h)
	if err != nil {
		return extensions.Observation{}, err
	}
	vars["root"] = at.root
	a, err := b.call(ctx, operation{id: at.id, files: pauseFiles, vars: vars})
	if err != nil {
		return extensions.Observation{}, err
	}
	return b.observeOne(h, a), nil
}
