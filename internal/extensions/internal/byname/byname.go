// Package byname makes, finds, watches and ends the sandboxes of one account at a place that gives each a name of ours, and
// a name to one sandbox at a time. So the name decides what became of a create, whatever the place answered; and before
// anything is ended, its id and account are compared.
package byname

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/looks"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// Told is what a place tells of one sandbox.
type Told struct {
	// Observation has the zero ID if the sandbox does not carry one of this account's.
	extensions.Observation
	Called  string // how messages name it; "" = by its Ref
	State   string // in the place's own word, "" = it has none
	Ended   string // why it lives no more and leaves nothing to end; "" = there is something
	Leaving bool   // the place ends it already
}

func (t Told) called() string {
	if t.Called != "" {
		return t.Called
	}
	return t.Handle.Ref
}

// Place is one account. T is what the place answers about one sandbox. No field changes once it is used.
type Place[T any] struct {
	Vendor string // for messages
	// Handle points to a sandbox by the place's own name of it; ref is "" while only our id, and so its name, is known.
	Handle func(id extensions.ID, ref string) extensions.Handle
	// Look reads the sandbox that a handle points to, whosoever it is. KindNotFound is the place's word that none has its name.
	Look func(ctx context.Context, h extensions.Handle) (T, error)
	// List reads all of the account's, and perhaps others. One may be there twice.
	List func(ctx context.Context) ([]T, error)
	Tell func(T) Told
	// Make refuses or prepares a create, which leaves nothing to end, and returns the create, which returns the place's own
	// name of what it made.
	Make func(ctx context.Context, spec extensions.Spec) (create func(ctx context.Context) (ref string, err error), err error)
	// Refused says what a create's failure means once it is sure that nothing has its name; nil = what it says.
	Refused func(spec extensions.Spec, err error) error
	// Clear ends what a create made beside the sandbox, once it is sure that nothing has its name; nil = it makes nothing. If it
	// fails, the create leaves a handle.
	Clear func(ctx context.Context, spec extensions.Spec) error
	// End ends a sandbox of ours. The place may do it later, within Gone. One that is gone is KindNotFound.
	End  func(ctx context.Context, t Told) error
	Gone ready.Wait
}

// again is when to come back for what is on its way out.
const again = time.Second

// its reads the sandbox of a handle, alive or not, and refuses, with KindConflict, one that does not carry its id and account.
func (p *Place[T]) its(ctx context.Context, h extensions.Handle) (t T, told Told, err error) {
	if t, err = p.Look(ctx, h); err != nil {
		return t, told, err
	}
	if told = p.Tell(t); told.ID != h.ID {
		return t, told, p.foreign(told)
	}
	return t, told, nil
}

func (p *Place[T]) foreign(told Told) error {
	return extensions.Errorf(extensions.KindConflict, "the sandbox %s at %s does not carry this sandbox's id and account",
		extensions.Clean(told.called(), 80), p.Vendor).WithRemedy("check it at %s; sandboxer does not own it", p.Vendor)
}

// Owned reads a sandbox of ours that lives. KindNotFound: it does not. KindConflict: it is another's.
func (p *Place[T]) Owned(ctx context.Context, h extensions.Handle) (T, Told, error) {
	t, told, err := p.its(ctx, h)
	if err == nil && told.Ended != "" {
		err = extensions.Errorf(extensions.KindNotFound, "the sandbox %s has ended: %s", told.called(), told.Ended)
	}
	return t, told, err
}

// Status implements extensions.Backend. A list may lag or say less, so the sandbox of each handle is asked for by itself.
func (p *Place[T]) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles != nil {
		return looks.Each(ctx, p.Vendor, handles, func(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
			_, told, err := p.its(ctx, h)
			return told.Observation, err
		}), nil
	}
	all, err := p.List(ctx)
	if err != nil {
		return nil, extensions.Failed("status", "", err, nil)
	}
	out, has := make([]extensions.Observation, 0, len(all)), map[string]bool{}
	for _, t := range all {
		if told := p.Tell(t); told.ID != "" && told.Ended == "" && !has[told.Handle.Ref] {
			has[told.Handle.Ref] = true
			out = append(out, told.Observation)
		}
	}
	return out, nil
}

// Find implements extensions.Backend: the name is made of the id.
func (p *Place[T]) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	_, told, err := p.Owned(ctx, p.Handle(id, ""))
	if err != nil {
		return extensions.Handle{}, extensions.Failed("find", id, err, nil)
	}
	return told.Handle, nil
}

// Teardown implements extensions.Backend.
func (p *Place[T]) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	report, err := p.teardown(ctx, h)
	return report, extensions.Failed("teardown", h.ID, err, nil)
}

func (p *Place[T]) teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	_, told, err := p.Owned(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.CleanupReport{AlreadyGone: true, EndedAt: told.EndedAt}, nil
	}
	if err == nil && !told.Leaving {
		if err = p.End(ctx, told); extensions.IsKind(err, extensions.KindNotFound) {
			err = nil
		}
	}
	if err != nil {
		return report, err
	}
	report = extensions.CleanupReport{Removed: []string{"sandbox " + told.called()}, StartedAt: told.StartedAt}
	return report, p.Gone.Soon(ctx, p.Vendor+" still shows "+told.called(), func(ctx context.Context) (bool, error) {
		_, _, err := p.Owned(ctx, told.Handle)
		if extensions.IsKind(err, extensions.KindNotFound) {
			return true, nil
		}
		return false, err
	})
}

// Reject ends a sandbox that is not what was asked for, and returns why; it says if the sandbox could not be ended.
func (p *Place[T]) Reject(ctx context.Context, h extensions.Handle, why error) error {
	if _, err := p.teardown(context.WithoutCancel(ctx), h); err != nil {
		return extensions.Errorf(extensions.KindOf(why), "%w; it was not ended: %w", why, err)
	}
	return why
}
