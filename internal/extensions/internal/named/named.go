// Package named has the sandboxes of a vendor that knows each by a name, which is made of our id and which it gives to no other: a
// look-up by it proves presence and absence. Whose a sandbox is, its labels say; that is compared before every use.
package named

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/looks"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// again is when to come back to a sandbox that is on its way out.
const again = 2 * time.Second

// Told is what a vendor tells of a sandbox.
type Told struct {
	Ref       string // the vendor's own name of it
	Labels    map[string]string
	Ending    bool // it is on its way out
	StartedAt time.Time
}

// Shelf has the sandboxes of one account. S is the vendor's own form of one.
type Shelf[S any] struct {
	Vendor, Account string
	// Handle points to a sandbox; ref is empty while only our id is known. Check refuses a handle that is not one of these.
	Handle func(id extensions.ID, ref string) extensions.Handle
	Check  func(h extensions.Handle) error
	// Get reads the sandbox of a handle, by its name if the handle has no more. KindNotFound is the vendor's own word.
	Get func(ctx context.Context, h extensions.Handle) (S, error)
	// List reads all that may be of the account. End ends one; KindNotFound = it is gone.
	List    func(ctx context.Context) ([]S, error)
	End     func(ctx context.Context, s S) error
	Told    func(S) Told
	Observe func(id extensions.ID, s S) extensions.Observation
	Gone    ready.Wait // how long the vendor may show what was ended
	// Classify is the adapter's, for extensions.Failed; it may be nil.
	Classify func(error) *extensions.Error
}

// Ours returns the id that a sandbox carries, if it is one of this account.
func (b *Shelf[S]) Ours(s S) (extensions.ID, bool) {
	has := b.Told(s).Labels
	id, err := extensions.ParseID(has[extensions.LabelID])
	return id, err == nil && has[extensions.LabelAccount] == b.Account
}

// Owned reads the sandbox of a handle and refuses one that carries another id or account.
func (b *Shelf[S]) Owned(ctx context.Context, h extensions.Handle) (s S, err error) {
	if err := b.Check(h); err != nil {
		return s, err
	}
	if s, err = b.Get(ctx, h); err != nil {
		return s, err
	}
	if id, ok := b.Ours(s); !ok || id != h.ID {
		return s, extensions.Errorf(extensions.KindConflict, "the sandbox %s at %s does not carry this sandbox's id and account",
			extensions.Clean(b.Told(s).Ref, 80), b.Vendor).WithRemedy("check it at %s; sandboxer does not own it", b.Vendor)
	}
	return s, nil
}

// Status implements extensions.Backend. A listing may lag, so single sandboxes are looked at one by one.
func (b *Shelf[S]) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles == nil {
		all, err := b.List(ctx)
		out := make([]extensions.Observation, 0, len(all))
		for _, s := range all {
			if id, ok := b.Ours(s); ok {
				out = append(out, b.Observe(id, s))
			}
		}
		return out, extensions.Failed("status", "", err, b.Classify)
	}
	return looks.Each(ctx, b.Vendor, handles, func(ctx context.Context, h extensions.Handle) (o extensions.Observation, err error) {
		s, err := b.Owned(ctx, h)
		if err == nil {
			o = b.Observe(h.ID, s)
		}
		return o, err
	}), nil
}

// Find implements extensions.Backend.
func (b *Shelf[S]) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h := b.Handle(id, "")
	s, err := b.Owned(ctx, h)
	if extensions.IsKind(err, extensions.KindConflict) {
		err = extensions.Errorf(extensions.KindNotFound, "another sandbox at %s has its name", b.Vendor)
	}
	if err != nil {
		return extensions.Handle{}, extensions.Failed("find", id, err, b.Classify)
	}
	return b.Handle(id, b.Told(s).Ref), nil
}

// Adopt returns the sandbox with the same id and generation; false = there is none.
func (b *Shelf[S]) Adopt(ctx context.Context, spec extensions.Spec) (s S, found bool, err error) {
	s, err = b.Owned(ctx, b.Handle(spec.ID, ""))
	if extensions.IsKind(err, extensions.KindNotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	told := b.Told(s)
	if told.Ending {
		busy := extensions.Errorf(extensions.KindUnavailable, "%s still ends the sandbox of this id", b.Vendor)
		busy.RetryAfter = again
		return s, false, busy
	}
	if g := labels.Generation(told.Labels); g != spec.Generation {
		return s, false, extensions.Errorf(extensions.KindConflict, "generation %d of this sandbox exists, want %d", g, spec.Generation).
			WithRemedy("tear the other generation down first")
	}
	return s, true, nil
}

// Make adopts the sandbox with the same id and generation, or lets create make one, whose left says that something may exist
// although it failed. Whenever something may exist, there is a handle.
func (b *Shelf[S]) Make(ctx context.Context, spec extensions.Spec,
	create func(context.Context, extensions.Spec) (s S, left bool, err error)) (h extensions.Handle, s S, err error) {
	if spec.Account != b.Account {
		return h, s, extensions.Errorf(extensions.KindInvalid, "the sandbox is of another account")
	}
	s, found, err := b.Adopt(ctx, spec)
	if err == nil && !found {
		var left bool
		if s, left, err = create(ctx, spec); left {
			h = b.Handle(spec.ID, "")
		}
	}
	if err == nil {
		h = b.Handle(spec.ID, b.Told(s).Ref)
	}
	return h, s, err
}

// Teardown ends the sandbox of a handle and confirms that it is gone.
func (b *Shelf[S]) Teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	s, err := b.Owned(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	if err != nil {
		return report, err
	}
	told := b.Told(s)
	h.Ref = told.Ref
	if !told.Ending {
		if err := b.End(ctx, s); err != nil && !extensions.IsKind(err, extensions.KindNotFound) {
			return report, err
		}
	}
	report = extensions.CleanupReport{Removed: []string{"sandbox " + told.Ref}, StartedAt: told.StartedAt}
	return report, b.Gone.Soon(ctx, b.Vendor+" still shows "+told.Ref+", which may cost until it is gone,",
		func(ctx context.Context) (bool, error) {
			_, err := b.Get(ctx, h)
			if extensions.IsKind(err, extensions.KindNotFound) {
				return true, nil
			}
			return false, err
		})
}
