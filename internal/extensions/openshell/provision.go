package openshell

import (
	"cmp"
	"context"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// idle is what a sandbox runs of its own: it waits for commands. Its end would be the sandbox's.
var idle = []string{"/bin/sh", "-c", "while :; do sleep 3600; done"}

// Provision implements extensions.Backend with one create. What the sandbox is filled with waits for WaitReady, which also
// demands its policy.
func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	h, o, err := b.provision(ctx, spec)
	return h, o, failed("provision", spec.ID, err)
}

func (b *backend) provision(ctx context.Context, spec extensions.Spec) (h extensions.Handle, o extensions.Observation, err error) {
	if err := b.refuse(spec); err != nil {
		return h, o, err
	}
	ref, left, err := b.create(ctx, spec)
	if left {
		h = handle(spec.ID, b.workspace, ref)
	}
	if err != nil {
		return h, o, err
	}
	return h, extensions.Observation{ID: spec.ID, Handle: h, Phase: extensions.PhaseProvisioning, Generation: spec.Generation}, nil
}

// create asks for the sandbox under a name made of our id, which the gateway gives to one sandbox of a workspace only. left says
// that something may exist. A gateway that refuses may have written the sandbox down before: the name decides.
func (b *backend) create(ctx context.Context, spec extensions.Spec) (ref string, left bool, err error) {
	if err := b.creates.Wait(ctx); err != nil {
		return "", false, b.line.Unsent(err)
	}
	if _, err := b.line.as(ctx); err != nil { // a token that cannot be had leaves nothing open
		return "", false, err
	}
	in, err := b.request(spec)
	if err != nil {
		return "", false, err
	}
	out, err := b.gateway.CreateSandbox(ctx, in)
	switch {
	case err == nil:
		if err := b.named(out.GetSandbox(), spec.ID, b.workspace); err != nil {
			return "", true, extensions.Errorf(extensions.KindIndeterminate, "whether it was made is not known: %w", err)
		}
		return out.GetSandbox().GetMetadata().GetId(), true, nil
	case extensions.IsKind(err, extensions.KindUnreachable), extensions.IsKind(err, extensions.KindUnauthorized):
		return "", false, err // nothing was sent, or nothing was done
	case maybe(err):
		return "", true, err // the engine asks for the name until it is sure
	}
	s, there := b.get(context.WithoutCancel(ctx), spec.ID, b.workspace)
	switch {
	case there == nil && extensions.IsKind(err, extensions.KindConflict):
		return b.adopt(spec, s)
	case there == nil:
		return "", true, extensions.Errorf(extensions.KindIndeterminate, "the create failed, and the sandbox exists: %w", err)
	case !extensions.IsKind(there, extensions.KindNotFound):
		return "", true, extensions.Errorf(extensions.KindIndeterminate, "whether %s made it is not known: %w", vendor, err)
	case extensions.IsKind(err, extensions.KindConflict):
		return "", false, extensions.Errorf(extensions.KindUnsupported, "the gateway cannot make it: %w", err).
			WithRemedy("ask for what the gateway's machines have, or choose another place")
	case extensions.IsKind(err, extensions.KindNotFound):
		return "", false, extensions.Errorf(extensions.KindInvalid, "the gateway does not know the workspace %s: %w", b.workspace, err).
			WithRemedy("create it, or set `%s` in the binding's config", fieldWorkspace)
	}
	return "", false, err
}

// adopt takes the sandbox that has the name already, if it is this generation of ours.
func (b *backend) adopt(spec extensions.Spec, s *gateway.Sandbox) (ref string, left bool, err error) {
	ref = s.GetMetadata().GetId()
	id, ok := b.ours(s)
	switch g := generation(s); {
	case !ok || id != spec.ID:
		return "", false, foreign(s)
	case s.GetStatus().GetPhase() == gateway.SandboxPhase_SANDBOX_PHASE_DELETING:
		busy := extensions.Errorf(extensions.KindUnavailable, "%s still deletes the sandbox of this id", vendor)
		busy.RetryAfter = gonePause
		return ref, true, busy
	case g != spec.Generation:
		return ref, true, extensions.Errorf(extensions.KindConflict, "generation %d of this sandbox exists, want %d", g, spec.Generation).
			WithRemedy("tear the other generation down first")
	}
	return ref, true, nil
}

// request is the create's message. The environment is not in it: whoever reads the sandbox reads that, too.
func (b *backend) request(spec extensions.Spec) (*gateway.CreateSandboxRequest, error) {
	t := &gateway.SandboxTemplate{Image: b.image}
	if spec.Image != nil {
		t.Image = spec.Image.Pull
	}
	limits := map[string]any{}
	if c := spec.Resources.CPU; c != nil && b.sized() {
		limits["cpu"] = strconv.FormatInt(int64(*c), 10) + "m"
	}
	if m := spec.Resources.MemoryMB; m != nil && b.sized() {
		limits["memory"] = strconv.FormatInt(*m, 10) + "Mi"
	}
	if len(limits) > 0 {
		var err error
		if t.Resources, err = structpb.NewStruct(map[string]any{"limits": limits}); err != nil {
			return nil, err
		}
	}
	s := &gateway.SandboxSpec{Template: t, Policy: policyOf(spec), Command: idle}
	if g := spec.Resources.GPU; g != nil && g.Count > 0 {
		n := uint32(g.Count) //nolint:gosec // refused above what the type holds
		s.ResourceRequirements = &gateway.ResourceRequirements{Gpu: &gateway.GpuResourceRequirements{Count: &n}}
	}
	return &gateway.CreateSandboxRequest{Name: nameOf(spec.ID), Workspace: b.workspace, Labels: labelsOf(spec), Annotations: notesOf(spec),
		Spec: s}, nil
}

// sized reports a driver that holds sandboxes to their sizes.
func (s settings) sized() bool { return cmp.Or(s.driver, driverVM) != driverVM }
