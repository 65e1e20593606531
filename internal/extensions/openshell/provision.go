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

// prepare returns the create, under a name made of our id, which the gateway gives to one sandbox of a workspace only. What the
// sandbox is filled with waits for WaitReady, which also demands its policy.
func (b *backend) prepare(ctx context.Context, spec extensions.Spec) (func(context.Context) (string, error), error) {
	if err := b.refuse(spec); err != nil {
		return nil, err
	}
	if err := b.creates.Wait(ctx); err != nil {
		return nil, b.line.Unsent(err)
	}
	if _, err := b.caller(ctx); err != nil { // a token that cannot be had leaves nothing open
		return nil, err
	}
	in, err := b.request(spec)
	return func(ctx context.Context) (string, error) {
		out, err := b.gateway.CreateSandbox(ctx, in)
		if err != nil {
			return "", err
		}
		if err := about(out.GetSandbox(), spec.ID, b.workspace); err != nil {
			return "", extensions.Errorf(extensions.KindIndeterminate, "it is unknown whether it was created: %w", err)
		}
		return out.GetSandbox().GetMetadata().GetId(), nil
	}, err
}

// refused says what a create's failure means when nothing has the sandbox's name.
func (b *backend) refused(_ extensions.Spec, err error) error {
	switch {
	case extensions.IsKind(err, extensions.KindConflict):
		return extensions.Errorf(extensions.KindUnsupported, "the gateway cannot create it: %w", err).
			WithRemedy("request what the gateway's machines have, or choose another place")
	case extensions.IsKind(err, extensions.KindNotFound):
		return extensions.Errorf(extensions.KindInvalid, "the gateway does not know the workspace %s: %w", b.workspace, err).
			WithRemedy("create it, or set `%s` in the binding's config", fieldWorkspace)
	}
	return err
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
		n := uint32(g.Count)
		s.ResourceRequirements = &gateway.ResourceRequirements{Gpu: &gateway.GpuResourceRequirements{Count: &n}}
	}
	return &gateway.CreateSandboxRequest{Name: nameOf(spec.ID), Workspace: b.workspace, Labels: labelsOf(spec), Annotations: notesOf(spec),
		Spec: s}, nil
}

// sized reports a driver that holds sandboxes to their sizes.
func (s settings) sized() bool { return cmp.Or(s.driver, driverVM) != driverVM }
