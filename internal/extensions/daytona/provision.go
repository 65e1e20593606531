package daytona

import (
	"context"
	"net/http"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// Provision implements extensions.Backend with one create. What the sandbox is filled with waits for WaitReady.
func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (h extensions.Handle, o extensions.Observation, err error) {
	defer tell("provision", spec.ID, &err)
	if err := b.refuse(spec); err != nil {
		return h, o, err
	}
	s, found, err := b.all.Adopt(ctx, spec)
	if err == nil && !found {
		var left bool
		if s, left, err = b.create(ctx, spec); left {
			h = handle(spec.ID, "")
		}
	}
	if err != nil {
		return h, o, err
	}
	h = handle(spec.ID, s.Id)
	wrong := b.otherwise(ctx, spec, s)
	if extensions.IsKind(wrong, extensions.KindUnsupported) {
		if _, err := b.Teardown(context.WithoutCancel(ctx), h); err == nil {
			h = extensions.Handle{}
		}
	}
	return h, extensions.Observation{ID: spec.ID, Handle: h, Phase: extensions.PhaseProvisioning, Generation: spec.Generation}, wrong
}

// otherwise says what the vendor made in another way than it was asked to; nil = nothing.
func (b *backend) otherwise(ctx context.Context, spec extensions.Spec, s *sandbox) error {
	if spec.Region != "" && s.Target != spec.Region {
		return extensions.Errorf(extensions.KindUnsupported, "%s made it in the region %q, not in %q", vendor, extensions.Clean(s.Target, 40),
			spec.Region).At("region").WithRemedy("choose a region that the organization has")
	}
	if is := s.SandboxClass; is != nil && (*is == classVM) != b.vm {
		return extensions.Errorf(extensions.KindUnsupported, "%s made it of the class %q", vendor, extensions.Clean(string(*is), 40)).
			At("options.snapshot").WithRemedy("name a snapshot of the class that the binding's config says, or change its `class`")
	}
	return b.ends(ctx, s, spec.Deadline)
}

// create asks for the sandbox; its name is our id, so a second one cannot be made. left says that something may exist.
func (b *backend) create(ctx context.Context, spec extensions.Spec) (_ *sandbox, left bool, err error) {
	in, err := b.request(ctx, spec)
	if err != nil {
		if left = spec.FromSandbox != "" && (maybe(err) || extensions.IsKind(err, extensions.KindInterrupted)); !left && maybe(err) {
			err = extensions.Errorf(extensions.KindUnavailable, "what it starts from was not ready in time: %w", err).WithRemedy("try again")
		}
		return nil, left, err
	}
	s, a, err := rest.Ask(ctx, b.control, rest.Call{Method: http.MethodPost, Path: []string{"sandbox"}, In: in, Turn: b.creates},
		is(string(spec.ID)))
	switch {
	case err != nil && a.Own && a.Status == http.StatusConflict: // the name is held: by whom?
		if held, found, lost := b.all.Adopt(ctx, spec); lost != nil || found {
			return held, false, lost
		}
	case err != nil && notHere(a) && spec.FromSnapshot == nil && spec.FromSandbox == "":
		err = extensions.Errorf(extensions.KindUnsupported, "%s has no such snapshot or region: %w", vendor, err).
			WithRemedy("name one of the organization's snapshots in options.snapshot or in the binding's config, and one of its regions")
	}
	if left = maybe(err); err != nil && !left && spec.FromSandbox != "" {
		left = b.drop(context.WithoutCancel(ctx), forkName(spec.ID)) != nil
	}
	return s, left, err
}

// request is the body of a create. The environment is not in it: whoever reads the sandbox reads that, too.
func (b *backend) request(ctx context.Context, spec extensions.Spec) (in newSandbox, err error) {
	name, has, never, atStop, no := string(spec.ID), labelsOf(spec), 0, 0, false
	in = newSandbox{CreateSandbox: api.CreateSandbox{Name: &name, Labels: &has, Public: &no}}
	snapshot, region := b.snapshotOf(spec), b.regionOf(spec)
	var from *api.SnapshotDto
	switch {
	case spec.FromSnapshot != nil:
		from, err = b.restored(ctx, spec)
	case spec.FromSandbox != "":
		from, err = b.keepFork(ctx, spec)
	case spec.Image != nil:
		snapshot = ""
		in.BuildInfo, err = b.built(ctx, spec)
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
	if region != "" {
		in.Target = &region
	}
	if snapshot != "" {
		in.Snapshot = &snapshot
	}
	restrict(&in, spec.Network)
	left := minutes(spec.Deadline) // whatever was built or kept before has taken its time
	if !b.cloud {
		idle := int(left)
		in.AutoStopInterval, in.AutoDeleteInterval = &idle, &atStop
	} else if in.TTLMinutes, in.AutoStopInterval = &left, &never; b.vm {
		in.AutoPauseInterval = &never
	}
	if in.Gpu != nil {
		in.AutoDeleteInterval = &atStop // the vendor makes no others
	}
	if archive := int(b.archive); archive > 0 && !b.vm {
		in.AutoArchiveInterval = &archive
	}
	return in, nil
}

// sized asks for a size, in whole cores and GiB.
func sized(in *newSandbox, r extensions.Resources) {
	in.Cpu, in.Memory, in.Disk = whole(r.CPU, 1000), whole(r.MemoryMB, 1024), whole(r.DiskMB, 1024)
	if r.GPU == nil || r.GPU.Count == 0 {
		return
	}
	in.Gpu = whole(&r.GPU.Count, 1)
	if r.GPU.Model != "" {
		in.GpuType = &[]api.GpuType{api.GpuType(r.GPU.Model)}
	}
}

// size is how many units something has, 0 without one.
func size[N ~int64](n *N, unit N) float32 {
	if n == nil {
		return 0
	}
	return float32(*n) / float32(unit)
}

func whole[N ~int64](n *N, unit N) *int {
	if n == nil {
		return nil
	}
	units := int(size(n, unit))
	return &units
}

// restrict denies all but what a profile allows.
func restrict(in *newSandbox, n extensions.Network) {
	if n.Needs() == extensions.EgressNone {
		return
	}
	list := func(of []string) *string {
		all := strings.Join(of, ",")
		return map[bool]*string{true: &all}[len(of) > 0]
	}
	networks, names := n.Lists()
	all := len(n.Egress) == 0
	in.NetworkBlockAll, in.NetworkAllowList, in.DomainAllowList = &all, list(networks), list(names)
}
