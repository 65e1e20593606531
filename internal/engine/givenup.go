package engine

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// GivenUp is err as the caller whose own context is ctx has to be told: once that
// was cancelled (Ctrl-C, and not a deadline), a failure that this explains is
// KindInterrupted, whatever the steps below made of it, and what to do about it is to
// do it again. What has a cause of its own, such as a name that is taken, stays.
func GivenUp(ctx context.Context, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	switch extensions.KindOf(err) {
	case extensions.KindTimeout, extensions.KindIndeterminate, extensions.KindUnreachable, extensions.KindUnavailable, extensions.KindInternal:
	case extensions.KindInterrupted:
		if extensions.RemedyOf(err) != "" {
			return err
		}
	default:
		return err
	}
	return extensions.Errorf(extensions.KindInterrupted, "it was interrupted before it was done: %w", err).
		WithRemedy("run the same command again: it finds what was begun and goes on from there")
}
