package modal

import (
	"cmp"
	"context"
	"strconv"
	"time"

	sdk "github.com/modal-labs/modal-client/go"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
)

// idle is what a sandbox runs of its own: it waits for commands until the vendor ends it. 48 hours are longer than any
// sandbox lives.
var idle = []string{"sleep", "172800"}

// defaultCPU and defaultMemory are what a profile gets that names no size; the price book says the same. What is asked for is
// the limit, too: the vendor bills what was used where that is more, and does not tell it.
var (
	defaultCPU    = extensions.Milli(1000)
	defaultMemory = int64(1024)
)

// prepare builds the image and returns the create, under our id as its name, which the vendor gives to one live sandbox of
// an app only. V1's create ends after the sandbox was made, and forgets its own name for it when it fails.
func (b *backend) prepare(ctx context.Context, spec extensions.Spec) (func(context.Context) (string, error), error) {
	if err := b.refuse(spec); err != nil {
		return nil, err
	}
	app, err := b.application(ctx, true)
	if err != nil {
		return nil, err
	}
	image, _, err := b.image(ctx, app, spec)
	if err != nil {
		return nil, err
	}
	if err := b.creates.Wait(ctx); err != nil {
		return nil, b.line.Unsent(err)
	}
	p, err := b.params(spec)
	if err = cmp.Or(err, spec.InTime(time.Now())); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (string, error) {
		ctx, heard := grpcline.Overhear(ctx)
		create := b.sdk.Sandboxes.ExperimentalCreate
		if p.GPU != "" {
			create = b.sdk.Sandboxes.Create
		}
		made, err := create(ctx, app, image, p)
		if err != nil {
			return "", unscheduled(heard(err))
		}
		return sandboxName(made.SandboxID, nil)
	}, nil
}

// params is the create's request. Variables and secrets go to commands alone: V1 would make objects of the vendor's of
// them.
func (b *backend) params(spec extensions.Spec) (*sdk.SandboxCreateParams, error) {
	life := time.Duration(deadline.Left(time.Now(), spec.Deadline, time.Second)) * time.Second
	labels, err := tags(spec, time.Now().Add(life))
	p := &sdk.SandboxCreateParams{Name: string(spec.ID), Tags: labels, Timeout: life, Command: idle, EncryptedPorts: b.public}
	if spec.Region != "" {
		p.Regions = []string{spec.Region}
	}
	if b.runtime == runtimeGVisor {
		p.Runtime = sdk.SandboxRuntimeGVisor
	}
	cores := float64((*cmp.Or(spec.Resources.CPU, &defaultCPU) + 1) / 2) // thousandths of cores of 2 vCPU each
	p.CPU = (cores + 0.5) / 1000                                         // the SDK cuts the rest off
	p.MemoryMiB = int(*cmp.Or(spec.Resources.MemoryMB, &defaultMemory))
	p.CPULimit, p.MemoryLimitMiB = p.CPU, p.MemoryMiB
	if g := spec.Resources.GPU; g != nil && g.Count > 0 {
		p.GPU = g.Model + ":" + strconv.FormatInt(g.Count, 10)
	}
	switch n := spec.Network; {
	case n.Needs() == extensions.EgressNone:
	case len(n.Egress) == 0:
		p.BlockNetwork = true
	default: // an empty list allows nothing of its kind; a missing one would allow everything
		networks, names := n.Allowed()
		p.OutboundCIDRAllowlist, p.OutboundDomainAllowlist = &sdk.Allowlist{Entries: networks}, &sdk.Allowlist{Entries: names}
	}
	return p, err
}
