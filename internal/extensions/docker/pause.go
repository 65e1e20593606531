package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Pause implements extensions.Pauser with the kernel's freezer. Our loop is frozen too, so nothing here ends the
// sandbox until it is resumed.
func (b *Backend) Pause(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.freeze(ctx, h, container.StatePaused, time.Time{}, func(c container.Summary) error {
		if err := b.engine.canFreeze(ctx); err != nil {
			return err
		}
		return b.engine.pause(ctx, c.ID)
	})
	return o, failed("pause", h.ID, err)
}

// freezeTries is how often the engine is asked to pause a container: on a busy machine the kernel's first freezer
// does not always stop all processes before runc gives up.
const freezeTries = 5

func (e *engine) pause(ctx context.Context, id string) error {
	for try := 1; ; try++ {
		_, err := e.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		if err == nil || try == freezeTries || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Resume implements extensions.Pauser.
func (b *Backend) Resume(ctx context.Context, h extensions.Handle, deadline time.Time) (extensions.Observation, error) {
	o, err := b.freeze(ctx, h, container.StateRunning, deadline, func(c container.Summary) error {
		return b.unpause(ctx, c)
	})
	return o, failed("resume", h.ID, err)
}

func (b *Backend) unpause(ctx context.Context, c container.Summary) error {
	err := b.use(ctx, c)
	if err == nil {
		_, err = b.engine.ContainerUnpause(ctx, c.ID, client.ContainerUnpauseOptions{})
	}
	if err == nil {
		err = b.wake(ctx, c)
	}
	return err
}

// unpauseAll lets everything of a sandbox run that has not just ended.
func (b *Backend) unpauseAll(ctx context.Context, found objects) (failed error) {
	for _, c := range found.containers {
		if c.State != container.StatePaused {
			continue
		}
		if err := b.unpause(ctx, c); err != nil && !errdefs.IsConflict(err) && !errdefs.IsNotFound(err) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// freeze brings all containers that run, or are paused, into a state. A deadline that is not zero is in force
// before anything runs again. The name says since when before anything changes, for whoever finds what a killed run left.
func (b *Backend) freeze(ctx context.Context, h extensions.Handle, want container.ContainerState, deadline time.Time,
	change func(c container.Summary) error) (extensions.Observation, error) {
	var none extensions.Observation
	found, at, err := b.live(ctx, h)
	if err != nil {
		return none, err
	}
	if at.hold.key != "" {
		return none, held(h.ID)
	}
	next := at
	if !deadline.IsZero() && !deadline.Equal(at.deadline) {
		next.deadline = deadline
		if err := b.leases(ctx, found, deadline); err != nil {
			return none, sent(err)
		}
	}
	others := slices.DeleteFunc(slices.Clone(found.containers), func(c container.Summary) bool {
		return c.State == want || c.State != container.StateRunning && c.State != container.StatePaused
	})
	if len(others) > 0 {
		next.since = time.Now()
	}
	if err := b.restand(ctx, h.ID, func(s *standing) { s.deadline, s.since = next.deadline, next.since }); err != nil {
		return none, sent(err)
	}
	for _, c := range others {
		b.step(string(want))
		if err := change(c); err != nil {
			if want == container.StatePaused {
				err = b.unfrozen(ctx, h.ID, err)
			}
			return none, sent(err)
		}
	}
	return b.observed(ctx, h)
}

// unfrozen lets everything run again after a pause that failed: a part of it is none.
func (b *Backend) unfrozen(ctx context.Context, id extensions.ID, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	found, err := b.look(ctx, id)
	if err == nil {
		err = b.unpauseAll(ctx, found)
	}
	if err != nil {
		return fmt.Errorf("%w; what it had paused stays so: %w", cause, err)
	}
	return cause
}
