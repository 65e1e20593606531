package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// locked runs do on an existing sandbox, under its lock.
func (b *Backend) locked(ctx context.Context, h extensions.Handle, do func(box, record) error) error {
	bx, err := b.settings.resolve(h)
	if err != nil {
		return err
	}
	lock, err := bx.lock(ctx, lockWait)
	if errors.Is(err, fs.ErrNotExist) {
		return bx.missing()
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	rec, err := bx.read()
	if err != nil {
		return err
	}
	if bx.adrift(rec) {
		return bx.missing()
	}
	return do(bx, rec)
}

// ended are the phases of what runs no more.
var ended = []extensions.Phase{extensions.PhaseExpired, extensions.PhaseTerminated, extensions.PhaseFailed}

// Extend implements extensions.Extender with one small write, which the init reads within a second, and a
// second one that records it.
func (b *Backend) Extend(ctx context.Context, h extensions.Handle, deadline time.Time) error {
	return failed("extend", h.ID, b.locked(ctx, h, func(bx box, rec record) error {
		if deadline.IsZero() {
			return extensions.Errorf(extensions.KindInvalid, "a sandbox on this machine needs a deadline")
		}
		if o := b.observe(bx, rec); slices.Contains(ended, o.Phase) {
			return extensions.Errorf(extensions.KindNotFound, "%s has ended: %s", h.ID, o.Reason)
		}
		rec.Deadline = deadline.UTC()
		return errors.Join(bx.setDeadline(deadline), bx.write(rec))
	}))
}

// SetGeneration implements extensions.GenerationSetter.
func (b *Backend) SetGeneration(ctx context.Context, h extensions.Handle, generation int64) error {
	return failed("set generation", h.ID, b.locked(ctx, h, func(bx box, rec record) error {
		if generation <= rec.Generation {
			return extensions.Errorf(extensions.KindConflict, "%s already has the generation %d, not below %d", h.ID, rec.Generation, generation)
		}
		rec.Generation = generation
		if rec.Labels != nil {
			rec.Labels[extensions.LabelGeneration] = fmt.Sprint(generation)
		}
		return bx.write(rec)
	}))
}
