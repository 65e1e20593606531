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
	h, s, err := b.all.Make(ctx, spec, b.create)
	if err != nil {
		return h, o, err
	}
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
	in.Snapshot, in.Target, in.AutoArchiveInterval = some(snapshot), some(region), some(b.archive)
	left := minutes(spec.Deadline) // whatever was built or kept before has taken its time
	if in.TTLMinutes, in.AutoStopInterval = &left, &never; !b.cloud {
		in.TTLMinutes, in.AutoStopInterval = nil, &left
	}
	if !b.cloud || in.Gpu != nil { // the vendor makes no others with GPUs
		in.AutoDeleteInterval = &atStop
	}
	restrict(&in, spec.Network)
	return in, nil
}

// some is nil in place of nothing.
func some[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
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
	in.Cpu, in.Memory, in.Disk = some(int(units(r.CPU, 1000))), some(int(units(r.MemoryMB, 1024))), some(int(units(r.DiskMB, 1024)))
	if r.GPU != nil && r.GPU.Count > 0 {
		in.Gpu = some(int(r.GPU.Count))
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
	in.NetworkBlockAll, in.NetworkAllowList, in.DomainAllowList = &all, some(strings.Join(networks, ",")), some(strings.Join(names, ","))
}
