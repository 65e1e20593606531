package engine

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// GivenUp is err as the caller whose own context is ctx has to be told: once that
// was cancelled (Ctrl-C), a failure that this explains is KindInterrupted, whatever
// the steps below made of it, and what to do about it is to do it again; once its
// deadline passed, an answer that was not waited for is KindTimeout. What has a
// cause of its own, such as a name that is taken, stays.
func GivenUp(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	kind := extensions.KindOf(err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if kind == extensions.KindIndeterminate || kind == extensions.KindInternal {
			return extensions.Errorf(extensions.KindTimeout, "it was not done in the time it was given: %w", err)
		}
		return err
	}
	switch kind {
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
