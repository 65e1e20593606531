package modal

import (
	"context"
	"strconv"
	"time"

	sdk "github.com/modal-labs/modal-client/go"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
)

// idle is what a sandbox runs of its own: it waits for commands until the vendor ends it. 48 hours are longer than any
// sandbox lives.
var idle = []string{"sleep", "172800"}

// Provision implements extensions.Backend with one create. What the sandbox is filled with waits for WaitReady.
func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (h extensions.Handle, o extensions.Observation, err error) {
	defer named("provision", spec.ID, &err)
	if err := b.refuse(spec); err != nil {
		return h, o, err
	}
	app, err := b.application(ctx, true)
	if err != nil {
		return h, o, err
	}
	image, err := b.image(ctx, app, spec)
	if err != nil {
		return h, o, err
	}
	ref, left, err := b.create(ctx, spec, app, image)
	if left {
		h = handle(spec.ID, ref)
	}
	if err != nil {
		return h, o, err
	}
	return h, extensions.Observation{ID: spec.ID, Handle: h, Phase: extensions.PhaseProvisioning, Generation: spec.Generation}, nil
}

// create asks for the sandbox under our id as its name, which the vendor gives to one live sandbox of an app only. left
// says that something may exist. Whatever the vendor answers but that the name is taken, the name decides: V1's create
// ends after the sandbox was made, and forgets its own name for it when it fails.
func (b *backend) create(ctx context.Context, spec extensions.Spec, app *sdk.App, image *sdk.Image) (ref string, left bool, err error) {
	p, err := b.params(spec)
	if err != nil {
		return "", false, err
	}
	var made *sdk.Sandbox
	if p.GPU != "" {
		made, err = b.sdk.Sandboxes.Create(ctx, app, image, p)
	} else {
		made, err = b.sdk.Sandboxes.ExperimentalCreate(ctx, app, image, p)
	}
	failure := err
	switch err = known(err); {
	case err == nil && refName.MatchString(made.SandboxID):
		return made.SandboxID, true, nil
	case err == nil:
		return "", true, extensions.Errorf(extensions.KindIndeterminate, "%s names %q as a sandbox", vendor, extensions.Clean(made.SandboxID, 80))
	case as[sdk.AlreadyExistsError](failure):
		return b.adopt(ctx, spec)
	case extensions.IsKind(err, extensions.KindUnreachable):
		return "", false, err // nothing was sent
	case maybe(err):
		return "", true, err // the engine asks for the name until it is sure
	}
	switch _, there := b.byName(context.WithoutCancel(ctx), spec.ID); {
	case there == nil:
		return "", true, extensions.Errorf(extensions.KindIndeterminate, "the create failed, and the sandbox exists: %w", err)
	case !extensions.IsKind(there, extensions.KindNotFound):
		return "", true, extensions.Errorf(extensions.KindIndeterminate, "whether %s made it is not known: %w", vendor, err)
	case extensions.IsKind(err, extensions.KindNotFound) && spec.FromSnapshot == nil:
		return "", false, extensions.Errorf(extensions.KindUnavailable, "its image was removed meanwhile: %w", err).WithRemedy("create it again")
	}
	return "", false, err
}

// adopt takes the sandbox that has the name already, if it is this generation of it.
func (b *backend) adopt(ctx context.Context, spec extensions.Spec) (ref string, left bool, err error) {
	ref, err = b.byName(ctx, spec.ID)
	if err != nil {
		return "", true, extensions.Errorf(extensions.KindIndeterminate, "%s has the name and does not say whose it is: %w", vendor, err)
	}
	s, err := b.get(ctx, ref)
	switch {
	case err != nil:
		return ref, true, err
	case s.id != spec.ID:
		return "", false, foreign(ref)
	case s.generation != spec.Generation:
		return ref, true, extensions.Errorf(extensions.KindConflict, "generation %d of this sandbox exists, want %d", s.generation,
			spec.Generation).
			WithRemedy("tear the other generation down first")
	}
	return ref, true, nil
}

// params is the create's request. Variables and secrets go to commands alone: V1 would make objects of the vendor's of
// them.
func (b *backend) params(spec extensions.Spec) (*sdk.SandboxCreateParams, error) {
	life := time.Duration(deadline.Left(time.Now(), spec.Deadline, time.Second)) * time.Second
	labels, err := tags(spec, time.Now().Add(life))
	p := &sdk.SandboxCreateParams{Name: string(spec.ID), Tags: labels, Timeout: life, Command: idle}
	if b.runtime == runtimeGVisor {
		p.Runtime = sdk.SandboxRuntimeGVisor
	}
	if c := spec.Resources.CPU; c != nil {
		cores := float64((*c + 1) / 2) // thousandths of cores of 2 vCPU each
		p.CPU = (cores + 0.5) / 1000   // the SDK cuts the rest off
		p.CPULimit = p.CPU
	}
	if m := spec.Resources.MemoryMB; m != nil {
		p.MemoryMiB, p.MemoryLimitMiB = int(*m), int(*m)
	}
	if g := spec.Resources.GPU; g != nil && g.Count > 0 {
		p.GPU = g.Model + ":" + strconv.FormatInt(g.Count, 10)
	}
	allowOut(p, spec.Network)
	return p, err
}

func allowOut(p *sdk.SandboxCreateParams, n extensions.Network) {
	if n.Needs() == extensions.EgressNone {
		return
	}
	if len(n.Egress) == 0 {
		p.BlockNetwork = true
		return
	}
	// An empty list allows nothing of its kind; a missing one would allow everything.
	p.OutboundCIDRAllowlist, p.OutboundDomainAllowlist = &sdk.Allowlist{}, &sdk.Allowlist{}
	for _, r := range n.Egress {
		list, to := p.OutboundCIDRAllowlist, r.CIDR
		if r.Domain != "" {
			list, to = p.OutboundDomainAllowlist, r.Domain
		}
		list.Entries = append(list.Entries, to)
	}
}
