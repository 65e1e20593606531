package byname

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Provision implements extensions.Backend with one create. What the sandbox is filled with waits for WaitReady.
func (p *Place[T]) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	h, err := p.provision(ctx, spec)
	if err != nil {
		return h, extensions.Observation{}, extensions.Failed("provision", spec.ID, err, nil)
	}
	return h, extensions.Observation{ID: spec.ID, Handle: h, Phase: extensions.PhaseProvisioning, Generation: spec.Generation}, nil
}

// provision returns a handle with its error where something may exist.
func (p *Place[T]) provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, error) {
	create, err := p.Make(ctx, spec)
	if err != nil {
		if _, told, look := p.its(ctx, p.Handle(spec.ID, "")); look == nil && told.Ended == "" {
			return told.Handle, err // an earlier call made it, when what it starts from was still there
		}
		return extensions.Handle{}, err
	}
	ref, err := create(ctx)
	switch {
	case err == nil:
		return p.Handle(spec.ID, ref), nil
	case extensions.IsKind(err, extensions.KindUnreachable):
		return extensions.Handle{}, err // nothing was sent
	case extensions.MayBeDone(err):
		return p.Handle(spec.ID, ""), err // the engine asks for the name until it is sure
	}
	return p.decided(context.WithoutCancel(ctx), spec, err)
}

// decided says by the name what a create that was refused has left: a place may have made the sandbox before it refused, or
// for an earlier call.
func (p *Place[T]) decided(ctx context.Context, spec extensions.Spec, refused error) (extensions.Handle, error) {
	nameless := p.Handle(spec.ID, "")
	there, err := p.Look(ctx, nameless)
	told := Told{}
	if err == nil {
		told = p.Tell(there)
	}
	switch {
	case extensions.IsKind(err, extensions.KindNotFound) || told.Ended != "":
		if p.Refused != nil {
			refused = p.Refused(spec, refused)
		}
		if p.Clear != nil && p.Clear(ctx, spec) != nil {
			return nameless, refused
		}
		return extensions.Handle{}, refused
	case extensions.IsKind(err, extensions.KindUnauthorized) && extensions.IsKind(refused, extensions.KindUnauthorized):
		return extensions.Handle{}, refused // it listens to none of our calls
	case err != nil:
		return nameless, extensions.Errorf(extensions.KindIndeterminate, "it is unknown whether %s created it: %w", p.Vendor, refused)
	case !extensions.IsKind(refused, extensions.KindConflict):
		return nameless, extensions.Errorf(extensions.KindIndeterminate, "the create failed, and the sandbox exists: %w", refused)
	case told.ID != spec.ID:
		return extensions.Handle{}, p.foreign(told)
	}
	return told.Handle, p.adopt(spec, told)
}

// adopt takes the sandbox that has the name already, if it is this generation of it.
func (p *Place[T]) adopt(spec extensions.Spec, told Told) error {
	switch {
	case told.Leaving:
		busy := extensions.Errorf(extensions.KindUnavailable, "%s still ends the sandbox of this id", p.Vendor)
		busy.RetryAfter = again
		return busy
	case told.Generation != spec.Generation:
		return extensions.Errorf(extensions.KindConflict, "generation %d of this sandbox exists, want %d", told.Generation, spec.Generation).
			WithRemedy("tear the other generation down first")
	}
	return nil
}
