package vercel

import (
	"context"
	"net/http"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// A session stops asynchronously, and a sandbox that was deleted may be told of for a moment.
const (
	stopWithin = 60 * time.Second
	goneWithin = 15 * time.Second
	pause      = 500 * time.Millisecond
)

// Teardown implements extensions.Backend. The vendor forgets the meter with the sandbox, and it is final only once the
// session has stopped: so it is read between the two.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	report, err := b.teardown(ctx, h)
	return report, failed("teardown", h.ID, err)
}

func (b *backend) teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	w, err := b.owned(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	if err == nil {
		w, err = b.stop(ctx, h, w)
	}
	if err != nil {
		return report, err
	}
	usage := usageOf(w)
	report = extensions.CleanupReport{Removed: []string{"sandbox " + h.Ref}, StartedAt: usage.StartedAt, EndedAt: usage.EndedAt, Usage: &usage}
	_, err = b.api.Do(ctx, rest.Call{Method: http.MethodDelete, Path: []string{"v2", "sandboxes", h.Ref}, Query: b.of()})
	if err != nil && !extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.CleanupReport{}, err
	}
	b.filled.Forget(w.Session.ID)
	b.changing.Delete(h.Ref)
	return report, b.until(ctx, goneWithin, h.Ref, "still shows it", func(ctx context.Context) (bool, error) {
		_, err := b.get(ctx, h.Ref)
		if extensions.IsKind(err, extensions.KindNotFound) {
			return true, nil
		}
		return false, err
	})
}

// until looks until it is so, a while long.
func (b *backend) until(ctx context.Context, within time.Duration, ref, but string, look func(context.Context) (bool, error)) error {
	err := ready.Wait{Interval: pause, Timeout: within}.Until(ctx, func(ctx context.Context) (string, error) {
		if done, err := look(ctx); done || err != nil {
			return "", err
		}
		return vendor + " " + but, nil
	})
	if extensions.IsKind(err, extensions.KindTimeout) && ctx.Err() == nil {
		return extensions.Errorf(extensions.KindUnavailable, "%s %s: %s, %s after ending it", vendor, but, ref, within).
			WithRemedy("destroy it again")
	}
	return err
}

// over reports whether a session has stopped for good.
func over(w *whole) bool {
	switch w.Session.Status {
	case pending, running, snapshotting, stopping:
		return false
	}
	return true
}

// stop stops the session and returns what the vendor says of it then.
func (b *backend) stop(ctx context.Context, h extensions.Handle, w *whole) (*whole, error) {
	if !over(w) && w.Session.Status != stopping {
		var out struct {
			Session session `json:"session"`
		}
		err := b.act(ctx, w.Session.ID, "stop", nil, &out, func() bool { return out.Session.ID == w.Session.ID })
		// One that is gone, or being stopped by somebody else, is what was wanted.
		if err != nil && !extensions.IsKind(err, extensions.KindNotFound) && !isStopping(err) {
			return nil, err
		}
	}
	err := b.until(ctx, stopWithin, h.Ref, "is still stopping it", func(ctx context.Context) (done bool, err error) {
		if over(w) {
			return true, nil
		}
		w, err = b.owned(ctx, h)
		return err == nil && over(w), err
	})
	return w, err
}
