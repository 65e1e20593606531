package vercel

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// Provision implements extensions.Backend with one create. What the sandbox is filled with waits for WaitReady.
func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (h extensions.Handle, o extensions.Observation, err error) {
	defer named("provision", spec.ID, &err)
	if err := b.refuse(spec); err != nil {
		return h, o, err
	}
	if s := spec.FromSnapshot; s != nil {
		if _, err := b.StatSnapshot(ctx, s.Handle); err != nil {
			return h, o, err
		}
	}
	w, left, err := b.create(ctx, spec)
	if left {
		h = handle(spec.ID)
	}
	if err != nil {
		return h, o, err
	}
	is, want := w.Session.Region, cmp.Or(spec.Region, b.region)
	if is == want {
		is = cmp.Or(w.Sandbox.Region, want)
	}
	if want != "" && is != want {
		if _, left := b.Teardown(context.WithoutCancel(ctx), h); left == nil {
			h = extensions.Handle{}
		}
		return h, o, extensions.Errorf(extensions.KindUnsupported, "%s made it in the region %q, not in %q", vendor, extensions.Clean(is, 40),
			want).At("region").WithRemedy("choose a region where the team's sandboxes run")
	}
	return h, extensions.Observation{ID: spec.ID, Handle: h, Phase: extensions.PhaseProvisioning, Generation: spec.Generation}, nil
}

// create asks for the sandbox; the name is our id, so a second one cannot be made. left says that something may exist.
func (b *backend) create(ctx context.Context, spec extensions.Spec) (w *whole, left bool, err error) {
	in, version, err := b.wanted(spec)
	if err != nil {
		return nil, false, err
	}
	w = &whole{}
	a, err := b.api.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{version, "sandboxes"}, Query: url.Values{"teamId": {b.team}},
		In: &in, Out: w, Turn: b.creates, Turns: int(in.Resources.VCPUs),
		Begin: func() error {
			in.Timeout = deadline.Left(time.Now(), spec.Deadline, time.Millisecond)
			return spec.InTime(time.Now())
		},
		Is: func() bool { return w.Sandbox.Name == in.Name && w.about() }})
	switch {
	case err == nil:
		return w, true, nil
	case extensions.IsKind(err, extensions.KindIndeterminate), extensions.IsKind(err, extensions.KindTimeout):
		return nil, true, err
	case a.Own && (a.Status == http.StatusBadRequest || a.Status == http.StatusConflict): // perhaps the name is taken
		return b.adopted(ctx, spec, err)
	case a.Own && a.Status == http.StatusNotFound && (in.Image != "" || in.Runtime != ""):
		if _, lost := b.page(ctx, url.Values{"limit": {"1"}, "namePrefix": {in.Name}}); lost != nil { // a wrong project is not found as well
			return nil, false, lost
		}
		return nil, false, extensions.Errorf(extensions.KindUnsupported, "%s has no such image or runtime: %w", vendor, err).
			WithRemedy("name one that it has in options.image or options.runtime")
	case extensions.IsKind(err, extensions.KindNotFound):
		return nil, false, noProject(err)
	}
	return nil, false, err
}

// adopted returns the sandbox that has the name already, if it is that of an earlier call.
func (b *backend) adopted(ctx context.Context, spec extensions.Spec, refused error) (*whole, bool, error) {
	w, err := b.owned(ctx, handle(spec.ID))
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		return nil, false, refused
	case err != nil:
		return nil, false, err
	}
	has, _ := b.ours(w.Sandbox)
	err = spec.CheckGeneration(labels.Generation(has))
	return w, err == nil, err
}

// wanted is the body of a create but for its time, and the version of the API that takes it.
func (b *backend) wanted(spec extensions.Spec) (newSandbox, string, error) {
	has, err := tags(spec)
	if err != nil {
		return newSandbox{}, "", err
	}
	in := newSandbox{ProjectID: b.project, Name: string(spec.ID), Ports: []int{}, Resources: size{VCPUs: defaultCPU},
		Runtime: extensions.Text(spec.Options, fieldRuntime), Image: extensions.Text(spec.Options, fieldImage),
		NetworkPolicy: policyOf(spec.Network), Tags: has, Region: cmp.Or(spec.Region, b.region), FailoverRegions: []string{}}
	if cpu := spec.Resources.RoundUp(b.desc.Capabilities).CPU; cpu != nil {
		in.Resources.VCPUs = int64(*cpu) / 1000
	}
	if s := spec.FromSnapshot; s != nil { // it has its image
		in.Source, in.Image, in.Runtime = &source{"snapshot", s.Handle.Ref}, "", ""
	}
	if in.Runtime != "" {
		return in, "v2", nil
	}
	return in, "v3", nil
}

// policyOf is what a sandbox may reach, from its first moment on.
func policyOf(n extensions.Network) policy {
	switch {
	case n.Needs() == extensions.EgressNone:
		return policy{Mode: extensions.NetworkAllow}
	case len(n.Egress) == 0:
		return policy{Mode: extensions.NetworkDeny}
	}
	networks, names := n.Allowed()
	p := policy{Allow: &names}
	if len(networks) > 0 {
		p.Subnets = &subnets{networks}
	}
	return p
}
