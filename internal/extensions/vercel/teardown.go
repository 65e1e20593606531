package vercel

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// A session stops asynchronously, and a sandbox that was deleted may be told of for a moment.
var (
	changed = ready.Wait{Timeout: 60 * time.Second}
	gone    = ready.Wait{Timeout: 15 * time.Second}
)

// Teardown implements extensions.Backend. The vendor forgets the meter with the sandbox, and it is final only once the
// session has stopped: so it is read between the two.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	defer named("teardown", h.ID, &err)
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
	return report, gone.Gone(ctx, vendor+" still shows "+h.Ref, func(ctx context.Context) error {
		_, err := b.get(ctx, h.Ref)
		return err
	})
}

// over reports whether a session has stopped for good.
func over(w *whole) bool {
	return !slices.Contains([]string{pending, running, snapshotting, stopping}, w.Session.Status)
}

// stop stops the session.
func (b *backend) stop(ctx context.Context, h extensions.Handle, w *whole) (*whole, error) {
	if s := w.Session.Status; s == pending || s == running {
		_, err := b.api.Do(ctx, b.into(w.Session.ID, nil, "stop"))
		if err != nil && !extensions.IsKind(err, extensions.KindNotFound) { // one that is gone is what was wanted
			return nil, err
		}
	}
	return b.ended(ctx, h, w)
}

// ended waits until the session has stopped, and returns what the vendor says of it then.
func (b *backend) ended(ctx context.Context, h extensions.Handle, w *whole) (*whole, error) {
	err := changed.Soon(ctx, vendor+" is still stopping "+h.Ref, func(ctx context.Context) (done bool, err error) {
		if over(w) {
			return true, nil
		}
		w, err = b.owned(ctx, h)
		return err == nil && over(w), err
	})
	return w, err
}
