package daytona

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
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
		var a rest.Answer
		s, a, err = b.create(ctx, spec)
		switch {
		case err != nil && a.Own && a.Status == http.StatusConflict: // the name is held: by whom?
			if held, lost := b.adopted(ctx, spec); lost != nil || held != nil {
				s, err = held, lost
			}
		case extensions.IsKind(err, extensions.KindIndeterminate), extensions.IsKind(err, extensions.KindTimeout):
			h = handle(spec.ID, "")
		}
	}
	if err != nil {
		return h, o, err
	}
	h = handle(spec.ID, s.Id)
	if spec.Region != "" && s.Target != spec.Region {
		return b.elsewhere(ctx, spec, s)
	}
	return h, extensions.Observation{ID: spec.ID, Handle: h, Phase: extensions.PhaseProvisioning, Generation: spec.Generation}, nil
}

// elsewhere ends a sandbox that was made in another region than the one that was demanded.
func (b *backend) elsewhere(ctx context.Context, spec extensions.Spec, s *sandbox) (h extensions.Handle,
	o extensions.Observation, err error) {
	wrong := extensions.Errorf(extensions.KindUnsupported, "%s made it in the region %q, not in %q", vendor, extensions.Clean(s.Target, 40),
		spec.Region).At("region").WithRemedy("choose a region that the organization has")
	h = handle(spec.ID, s.Id)
	if _, err := b.teardown(context.WithoutCancel(ctx), h); err != nil {
		return h, o, wrong
	}
	return extensions.Handle{}, o, wrong
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

func (b *backend) create(ctx context.Context, spec extensions.Spec) (*sandbox, rest.Answer, error) {
	in := b.request(spec)
	var s sandbox
	a, err := b.control.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"sandbox"}, In: in, Out: &s, Turn: b.creates,
		Is: s.is(string(spec.ID))})
	if err != nil && notHere(a) {
		err = extensions.Errorf(extensions.KindUnsupported, "%s has no such snapshot or region: %w", vendor, err).
			WithRemedy("name one of the organization's snapshots in options.snapshot or in the binding's config, and one of its regions")
	}
	return &s, a, err
}

// request is the body of a create. The environment is not in it: whoever reads the sandbox reads that, too.
func (b *backend) request(spec extensions.Spec) newSandbox {
	name, has, left, never, atStop, no := string(spec.ID), labelsOf(spec), minutes(spec.Deadline), 0, 0, false
	in := newSandbox{CreateSandbox: api.CreateSandbox{Name: &name, Labels: &has, Public: &no}}
	if b.cloud {
		in.TTLMinutes, in.AutoStopInterval = &left, &never
	} else {
		idle := int(left)
		in.AutoStopInterval, in.AutoDeleteInterval = &idle, &atStop
	}
	if region := b.regionOf(spec); region != "" {
		in.Target = &region
	}
	if snapshot := b.snapshotOf(spec); spec.Image == nil && snapshot != "" {
		in.Snapshot = &snapshot
	}
	if spec.Image != nil {
		in.BuildInfo = &api.CreateBuildInfo{DockerfileContent: "FROM " + spec.Image.Pull + "\n"}
		sized(&in, spec.Resources)
	}
	restrict(&in, spec.Network)
	return in
}

// sized asks for a size, in whole cores and GiB.
func sized(in *newSandbox, r extensions.Resources) {
	up := func(n, unit int64) *int {
		whole := int(max(deadline.Up(time.Duration(n), time.Duration(unit)), 1))
		return &whole
	}
	if r.CPU != nil {
		in.Cpu = up(int64(*r.CPU), 1000)
	}
	if r.MemoryMB != nil {
		in.Memory = up(*r.MemoryMB, 1024)
	}
	if r.DiskMB != nil {
		in.Disk = up(*r.DiskMB, 1024)
	}
	if r.GPU != nil && r.GPU.Count > 0 {
		n := int(r.GPU.Count)
		in.Gpu = &n
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
