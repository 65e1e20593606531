package local

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// Pause implements extensions.Pauser: the init stops every program, holds it stopped and still ends all at the
// deadline.
func (b *Backend) Pause(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	return b.setMode(ctx, "pause", h, func(bx box, _ record) error { return bx.mode(ctx, wire.OpPause) })
}

// Resume implements extensions.Pauser.
func (b *Backend) Resume(ctx context.Context, h extensions.Handle, deadline time.Time) (extensions.Observation, error) {
	return b.setMode(ctx, "resume", h, func(bx box, rec record) error {
		if !deadline.IsZero() {
			rec.Deadline = deadline.UTC()
			if err := errors.Join(bx.setDeadline(deadline), bx.write(rec)); err != nil {
				return err
			}
		}
		return bx.mode(ctx, wire.OpResume)
	})
}

func (b *Backend) setMode(ctx context.Context, op string, h extensions.Handle,
	set func(box, record) error) (extensions.Observation, error) {
	err := b.locked(ctx, h, func(bx box, rec record) error {
		switch o := b.observe(bx, rec); o.Phase {
		case extensions.PhaseReady, extensions.PhasePaused:
			return set(bx, rec)
		case extensions.PhaseExpired, extensions.PhaseFailed:
			return extensions.Errorf(extensions.KindNotFound, "%s has ended: %s", h.ID, o.Reason)
		default:
			return extensions.Errorf(extensions.KindConflict, "%s is %s", h.ID, o.Phase).WithRemedy("wait until it is ready")
		}
	})
	if err != nil {
		return extensions.Observation{}, failed(op, h.ID, err)
	}
	o := b.status(h)
	return o, failed(op, h.ID, o.Err)
}

// paused returns how long what was observed has been paused.
func (b box) paused(o extensions.Observation) time.Duration {
	end, _ := b.tombstone()
	if end.Mode.Paused && o.EndedAt.IsZero() {
		return end.Mode.Rested + time.Since(end.Mode.Since)
	}
	if end.Mode.Paused && o.EndedAt.After(end.Mode.Since) { // it was killed
		return end.Mode.Rested + o.EndedAt.Sub(end.Mode.Since)
	}
	return end.Mode.Rested
}

// mode asks the init for another mode.
func (b box) mode(ctx context.Context, op string) error {
	_, err := b.simple(ctx, wire.Request{Op: op}, io.Discard)
	return err
}
