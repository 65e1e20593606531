package life

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// settleProvision determines what a failed provision left behind, and removes it.
func (c *creation) settleProvision(ctx context.Context, b *place.Backend, cause error) attempt {
	if !c.asked {
		return attempt{err: cause, clean: true}
	}
	if c.made.Ref != "" {
		return c.tearDown(ctx, b, cause)
	}
	if c.made.IsZero() {
		switch extensions.KindOf(cause) {
		case extensions.KindExhausted, extensions.KindUnavailable, extensions.KindInvalid, extensions.KindUnauthorized,
			extensions.KindUnsupported, extensions.KindNotFound: // what it was to start from
			return attempt{err: cause, clean: true, next: notHere(cause)}
		case extensions.KindUnreachable:
			if !c.lost { // no call of this create has arrived
				return attempt{err: cause, clean: true, next: true}
			}
		}
	}
	sctx, cancel := settling(ctx)
	defer cancel()
	h, err := b.FindSettled(sctx, c.Row.ID, c.Row.SentDeadline())
	switch {
	case absent(err):
		return attempt{err: cause, clean: true, next: extensions.IsKind(cause, extensions.KindIndeterminate)}
	case err != nil:
		return attempt{err: extensions.Errorf(extensions.KindOf(cause), "%w; looking for its sandbox: %w", cause, err)}
	}
	c.made = h
	if err := c.storeHandle(sctx, h, time.Time{}); err != nil {
		cause = errors.Join(cause, notRecorded(err))
	}
	return c.tearDown(ctx, b, cause)
}

// undo tears down a sandbox that is ready.
func (c *creation) undo(ctx context.Context, cause error) attempt {
	b, err := c.m.places.Open(context.WithoutCancel(ctx), placeOf(c.Row))
	if err != nil {
		return attempt{err: errors.Join(cause, err)}
	}
	return c.tearDown(ctx, b, cause)
}

// tearDown removes what a failed create made, even if the caller gave up.
func (c *creation) tearDown(ctx context.Context, b *place.Backend, cause error) attempt {
	sctx, cancel := settling(ctx)
	defer cancel()
	_, over, err := c.m.tearDown(sctx, c.Ledger, b, c.Row, c.made)
	if err != nil {
		return attempt{err: errors.Join(cause, err)}
	}
	c.over = &over
	return attempt{err: cause, clean: true, next: allowsNext(cause)}
}

// cleanupTime limits what is done after a caller gave up.
const cleanupTime = 2 * time.Minute

// settling returns a context for what must be done even though ctx has ended.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
}
