package local

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// CanFork implements extensions.Forker.
func (b *Backend) CanFork(ctx context.Context, h extensions.Handle) error {
	err := ctx.Err()
	if err == nil {
		_, err = b.source(h)
	}
	return failed("fork", h.ID, err)
}

// source returns a sandbox that can be forked now: a whole one that has not ended.
func (b *Backend) source(h extensions.Handle) (box, error) {
	bx, err := b.settings.resolve(h)
	if err != nil {
		return bx, err
	}
	rec, err := bx.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bx, bx.missing()
	case err != nil:
		return bx, err
	case rec.Account != b.settings.account:
		return bx, extensions.Errorf(extensions.KindConflict, "%s belongs to the account %q", h.ID, rec.Account)
	}
	switch o := b.observe(bx, rec); o.Phase {
	case extensions.PhaseReady, extensions.PhasePaused:
		return bx, nil
	case extensions.PhaseProvisioning:
		return bx, extensions.Errorf(extensions.KindConflict, "%s is not ready yet", h.ID).WithRemedy("wait until it is ready")
	default:
		return bx, extensions.Errorf(extensions.KindNotFound, "%s has ended: %s", h.ID, o.Reason)
	}
}

// fork copies the workspace and the home from init to init, each within its walls. The source takes no lock: if it ends
// meanwhile, its stream breaks, and the fork is undone.
func (b *Backend) fork(ctx context.Context, bx box, spec extensions.Spec) error {
	source, err := b.source(spec.Source)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var ends []func(error) error
	done := make(chan error, 2)
	to := func(op string) io.Writer {
		r, w := io.Pipe()
		ends = append(ends, w.CloseWithError)
		go func() {
			err := bx.upload(ctx, op, ".", r)
			if err != nil {
				cancel(err) // the source need not go on
			}
			done <- errors.Join(err, r.CloseWithError(err))
		}()
		return w
	}
	workspace := io.Discard
	if access(spec) != extensions.AccessNone {
		workspace = to(wire.OpSeed)
	}
	err = source.copyOut(ctx, workspace, to(wire.OpHome))
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	for _, end := range ends {
		_ = end(err)
	}
	for range ends {
		if lost := <-done; err == nil {
			err = lost
		}
	}
	return err
}
