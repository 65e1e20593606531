package daytona

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// Provision implements extensions.Backend with one create. What the sandbox is filled with waits for WaitReady.
func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (h extensions.Handle, o extensions.Observation, err error) {
	defer tell("provision", spec.ID, &err)
	if err := cmp.Or(spec.CheckIdentity(time.Now()), b.refuse(spec)); err != nil {
		return h, o, err
	}
	if h, o, err = b.Place.Provision(ctx, spec); err != nil {
		return h, o, err
	}
	s, _, err := b.Owned(ctx, h)
	if err == nil {
		err = b.otherwise(ctx, spec, s)
	}
	if extensions.IsKind(err, extensions.KindUnsupported) {
		if _, lost := b.Teardown(context.WithoutCancel(ctx), h); lost == nil {
			h = extensions.Handle{}
		}
	}
	return h, o, err
}

// otherwise says what the vendor made in another way than it was asked to; nil = nothing.
func (b *backend) otherwise(ctx context.Context, spec extensions.Spec, s *sandbox) error {
	if spec.Region != "" && s.Target != spec.Region {
		return extensions.Errorf(extensions.KindUnsupported, "%s made it in the region %q, not in %q", vendor, extensions.Clean(s.Target, 40),
			spec.Region).At("region").WithRemedy("choose a region that the organization has")
	}
	if is := s.SandboxClass; is != nil && (*is == classVM) != b.vm {
		return extensions.Errorf(extensions.KindUnsupported, "%s made it of the class %q", vendor, extensions.Clean(string(*is), 40)).
			At("options.snapshot").WithRemedy("name a snapshot of the class in the binding's config, or change that `class`")
	}
	return b.ends(ctx, s, spec.Deadline)
}

// prepare makes what a sandbox starts from ready and returns the create. A fork keeps its source's state in the create, which
// may so leave that alone.
func (b *backend) prepare(ctx context.Context, spec extensions.Spec) (func(context.Context) (string, error), error) {
	var in newSandbox
	var err error
	fork := spec.FromSandbox != ""
	if !fork {
		if in, err = b.request(ctx, spec); extensions.MayBeDone(err) {
			err = extensions.Errorf(extensions.KindUnavailable, "its source was not ready in time: %w", err).WithRemedy("try again")
		}
	}
	return func(ctx context.Context) (string, error) {
		if fork {
			if in, err = b.request(ctx, spec); err != nil {
				return "", err
			}
		}
		return b.create(ctx, spec, in)
	}, err
}

// clear drops what a fork that was not made would have come from.
func (b *backend) clear(ctx context.Context, spec extensions.Spec) error {
	if spec.FromSandbox == "" {
		return nil
	}
	return b.drop(ctx, forkName(spec.ID))
}

// create asks for the sandbox; its name is our id, so a second one cannot be made.
func (b *backend) create(ctx context.Context, spec extensions.Spec, in newSandbox) (string, error) {
	begin := func() error { // whatever was built or kept before has taken its time, and so has the turn
		left, never := minutes(spec.Deadline), 0
		if in.TTLMinutes, in.AutoStopInterval = &left, &never; !b.cloud {
			in.TTLMinutes, in.AutoStopInterval = nil, &left
		}
		return spec.InTime(time.Now())
	}
	s, a, err := rest.Ask(ctx, b.control, rest.Call{Method: http.MethodPost, Path: []string{"sandbox"}, In: &in, Turn: b.creates,
		Begin: begin}, is(string(spec.ID)))
	switch fork := spec.FromSandbox != ""; {
	case err != nil && notHere(a) && spec.FromSnapshot == nil && !fork:
		err = extensions.Errorf(extensions.KindUnsupported, "%s has no such snapshot or region: %w", vendor, err).
			WithRemedy("name one of the organization's snapshots in options.snapshot or in the binding's config, and one of its regions")
	case fork && extensions.IsKind(err, extensions.KindUnreachable):
		err = extensions.Errorf(extensions.KindIndeterminate, "only its source's state was kept: %w", err)
	}
	return s.Id, err
}

// request is the body of a create but for its time. The environment is not in it: whoever reads the sandbox reads that, too.
func (b *backend) request(ctx context.Context, spec extensions.Spec) (in newSandbox, err error) {
	name, has, atStop, no := string(spec.ID), labelsOf(spec), 0, false
	in = newSandbox{CreateSandbox: api.CreateSandbox{Name: &name, Labels: &has, Public: &no}}
	snapshot, region := cmp.Or(extensions.Text(spec.Options, fieldSnapshot), b.snapshot), cmp.Or(spec.Region, b.region)
	var from *api.SnapshotDto
	switch {
	case spec.FromSnapshot != nil:
		from, err = b.restored(ctx, spec)
	case spec.FromSandbox != "":
		from, err = b.keepFork(ctx, spec)
	case spec.Image != nil:
		snapshot = ""
		in.BuildInfo, err = b.built(ctx, spec, true)
		sized(&in, spec.Resources.RoundUp(b.desc.Capabilities))
	}
	if err != nil {
		return in, err
	}
	if from != nil {
		snapshot = from.Id
		if at := from.RegionIds; region == "" && at != nil && len(*at) > 0 {
			region = (*at)[0]
		}
	}
	in.Snapshot, in.Target, in.AutoArchiveInterval = rest.Some(snapshot), rest.Some(region), rest.Some(b.archive)
	if !b.cloud || in.Gpu != nil { // the vendor makes no others with GPUs
		in.AutoDeleteInterval = &atStop
	}
	restrict(&in, spec.Network)
	return in, nil
}

// units is how many of a unit something has, 0 without one.
func units[N ~int64](n *N, unit N) float32 {
	if n == nil {
		return 0
	}
	return float32(*n) / float32(unit)
}

// sized asks for a size, in whole cores and GiB.
func sized(in *newSandbox, r extensions.Resources) {
	in.Cpu, in.Memory = rest.Some(int(units(r.CPU, 1000))), rest.Some(int(units(r.MemoryMB, 1024)))
	in.Disk = rest.Some(int(units(r.DiskMB, 1024)))
	if r.GPU != nil && r.GPU.Count > 0 {
		in.Gpu = rest.Some(int(r.GPU.Count))
		if r.GPU.Model != "" {
			in.GpuType = &[]api.GpuType{api.GpuType(r.GPU.Model)}
		}
	}
}

// restrict denies all but what a profile allows.
func restrict(in *newSandbox, n extensions.Network) {
	if n.Needs() == extensions.EgressNone {
		return
	}
	networks, names := n.Allowed()
	all := len(n.Egress) == 0
	in.NetworkBlockAll, in.NetworkAllowList = &all, rest.Some(strings.Join(networks, ","))
	in.DomainAllowList = rest.Some(strings.Join(names, ","))
}
