package place

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Pause keeps the sandbox without running it.
func (b *Backend) Pause(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	return b.setMode(ctx, "pause", h, func(ctx context.Context, x extensions.Pauser) (extensions.Observation, error) {
		return x.Pause(ctx, h)
	})
}

// Resume runs a paused sandbox again, until the deadline.
func (b *Backend) Resume(ctx context.Context, h extensions.Handle, deadline time.Time) (extensions.Observation, error) {
	return b.setMode(ctx, "resume", h, func(ctx context.Context, x extensions.Pauser) (extensions.Observation, error) {
		return x.Resume(ctx, h, deadline)
	})
}

func (b *Backend) setMode(ctx context.Context, op string, h extensions.Handle,
	set func(context.Context, extensions.Pauser) (extensions.Observation, error)) (o extensions.Observation, err error) {
	x, err := power[extensions.Pauser](b, extensions.PowerPause)
	if err != nil {
		return o, err
	}
	err = b.change(ctx, call{op: op, id: h.ID, timeout: timeoutChange, patience: patienceChange},
		func(ctx context.Context) (err error) {
			o, err = set(ctx, x)
			return err
		})
	return o, err
}
