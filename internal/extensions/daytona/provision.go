package daytona

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// again is when to come back to a sandbox that is on its way out.
const again = 2 * time.Second

// Provision implements extensions.Backend with one create. The vendor's name of a sandbox is its id, and no name is given twice:
// so a look-up by it tells whether an earlier create had its effect. What the sandbox is filled with waits for WaitReady.
func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	h, o, err := b.provision(ctx, spec)
	return h, o, failed("provision", spec.ID, err)
}

func (b *backend) provision(ctx context.Context, spec extensions.Spec) (h extensions.Handle, o extensions.Observation, err error) {
	if err := b.refuse(spec); err != nil {
		return h, o, err
	}
	s, err := b.adopted(ctx, spec)
	if err == nil && s == nil {
		var left bool
		if s, left, err = b.create(ctx, spec); left {
			h = handle(spec.ID, "")
		}
	}
	if err != nil {
		return h, o, err
	}
	h = handle(spec.ID, s.Id)
	if wrong := b.otherwise(ctx, spec, s); extensions.IsKind(wrong, extensions.KindUnsupported) {
		if _, err := b.teardown(context.WithoutCancel(ctx), h); err == nil {
			h = extensions.Handle{}
		}
		return h, o, wrong
	} else if wrong != nil {
		return h, o, wrong
	}
	return h, extensions.Observation{ID: spec.ID, Handle: h, Phase: extensions.PhaseProvisioning, Generation: spec.Generation}, nil
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

// adopted returns the sandbox with the same id and generation, nil if there is none.
func (b *backend) adopted(ctx context.Context, spec extensions.Spec) (*sandbox, error) {
	s, err := b.owned(ctx, handle(spec.ID, ""))
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case s.state() == api.SandboxStateDestroying:
		busy := extensions.Errorf(extensions.KindUnavailable, "%s still destroys the sandbox of this id", vendor)
		busy.RetryAfter = again
		return nil, busy
	}
	if g := labels.Generation(s.Labels); g != spec.Generation {
		return nil, extensions.Errorf(extensions.KindConflict, "generation %d of this sandbox exists, want %d", g, spec.Generation).
			WithRemedy("tear the other generation down first")
	}
	return s, nil
}

// create asks for the sandbox; its name is our id, so a second one cannot be made. left says that something may exist.
func (b *backend) create(ctx context.Context, spec extensions.Spec) (s *sandbox, left bool, err error) {
	in, err := b.request(ctx, spec)
	if err != nil {
		if left = spec.FromSandbox != "" && (maybe(err) || extensions.IsKind(err, extensions.KindInterrupted)); !left && maybe(err) {
			err = extensions.Errorf(extensions.KindUnavailable, "what it starts from was not ready in time: %w", err).WithRemedy("try again")
		}
		return nil, left, err
	}
	s = &sandbox{}
	a, err := b.control.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"sandbox"}, In: in, Out: s, Turn: b.creates,
		Is: s.is(string(spec.ID))})
	switch {
	case err != nil && a.Own && a.Status == http.StatusConflict: // the name is held: by whom?
		if held, lost := b.adopted(ctx, spec); lost != nil || held != nil {
			return held, false, lost
		}
	case err != nil && notHere(a) && spec.FromSnapshot == nil && spec.FromSandbox == "":
		err = extensions.Errorf(extensions.KindUnsupported, "%s has no such snapshot or region: %w", vendor, err).
			WithRemedy("name one of the organization's snapshots in options.snapshot or in the binding's config, and one of its regions")
	}
	left = maybe(err)
	if err != nil && !left && spec.FromSandbox != "" {
		left = b.dropFork(context.WithoutCancel(ctx), spec.ID) != nil
	}
	return s, left, err
}

// maybe reports whether a failed call may have had its effect.
func maybe(err error) bool {
	return extensions.IsKind(err, extensions.KindIndeterminate) || extensions.IsKind(err, extensions.KindTimeout)
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
	in.Memory, in.Disk = gib(r.MemoryMB), gib(r.DiskMB)
	if r.CPU != nil {
		cpus := int(*r.CPU / 1000)
		in.Cpu = &cpus
	}
	if r.GPU != nil && r.GPU.Count > 0 {
		n := int(r.GPU.Count)
		in.Gpu = &n
		if r.GPU.Model != "" {
			in.GpuType = &[]api.GpuType{api.GpuType(r.GPU.Model)}
		}
	}
}

func gib(mb *int64) *int {
	if mb == nil {
		return nil
	}
	n := int(*mb / 1024)
	return &n
}

// restrict denies all but what a profile allows.
func restrict(in *newSandbox, n extensions.Network) {
	if n.Needs() == extensions.EgressNone {
		return
	}
	var networks, names []string
	for _, r := range n.Egress {
		if r.CIDR != "" {
			networks = append(networks, r.CIDR)
		} else {
			names = append(names, r.Domain)
		}
	}
	all := len(n.Egress) == 0
	in.NetworkBlockAll = &all
	if len(networks) > 0 {
		list := strings.Join(networks, ",")
		in.NetworkAllowList = &list
	}
	if len(names) > 0 {
		list := strings.Join(names, ",")
		in.DomainAllowList = &list
	}
}
