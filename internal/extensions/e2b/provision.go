package e2b

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// Provision implements extensions.Backend with one create. What the sandbox is filled with waits for WaitReady:
// so the first deadline covers one call, however large the workspace is.
func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	h, o, err := b.provision(ctx, spec)
	return h, o, failed("provision", spec.ID, err)
}

func (b *backend) provision(ctx context.Context, spec extensions.Spec) (h extensions.Handle, o extensions.Observation, err error) {
	if err := b.refuse(spec); err != nil {
		return h, o, err
	}
	made, err := b.adopted(ctx, spec)
	if err == nil && made == "" {
		var left bool
		if made, left, err = b.create(ctx, spec); left {
			h = handle(spec.ID, "")
		}
	}
	if err != nil {
		return h, o, err
	}
	h = handle(spec.ID, made)
	return h, extensions.Observation{ID: spec.ID, Handle: h, Phase: extensions.PhaseProvisioning, Generation: spec.Generation}, nil
}

// adopted returns the sandbox with the same id and generation, "" if none is listed. Of several, which only
// lost answers make, the oldest stays.
func (b *backend) adopted(ctx context.Context, spec extensions.Spec) (ref string, err error) {
	found, err := b.withID(ctx, spec.ID)
	if err != nil {
		return "", err
	}
	for _, d := range found {
		if err := spec.CheckGeneration(generation(d.Metadata)); err != nil {
			return "", err
		}
	}
	for i, d := range found {
		if i == 0 {
			ref = d.SandboxID
		} else if err := b.kill(ctx, d.SandboxID); err != nil {
			return "", err
		}
	}
	return ref, nil
}

// withID lists the account's sandboxes with this id, the oldest first.
func (b *backend) withID(ctx context.Context, id extensions.ID) ([]api.SandboxDetail, error) {
	found, err := b.list(ctx, extensions.LabelID, string(id))
	found = slices.DeleteFunc(found, func(d api.SandboxDetail) bool { it, _ := b.ours(d.Metadata); return it != id })
	slices.SortFunc(found, func(a, b api.SandboxDetail) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.SandboxID, b.SandboxID))
	})
	return found, err
}

// create asks for the sandbox. left says that something may exist although it failed.
func (b *backend) create(ctx context.Context, spec extensions.Spec) (made string, left bool, err error) {
	template, labels := b.templateOf(spec), metadata(spec)
	switch {
	case spec.FromSnapshot != nil:
		template = spec.FromSnapshot.Handle.Ref
	case spec.FromSandbox != "":
		if template, err = b.keepFork(ctx, spec); err != nil {
			return "", extensions.MayBeDone(err), err
		}
		labels[labelFork] = template
	case spec.Image != nil:
		t, _, err := planned(ctx, spec)
		if err == nil {
			err = b.ensure(ctx, spec, t)
		}
		if err != nil {
			return "", extensions.MayBeDone(err), err
		}
		template, labels[labelTemplate] = t.name, t.name
	}
	yes, no := true, false
	var timeout int32
	in := api.NewSandbox{TemplateID: template, Timeout: &timeout, Metadata: &labels, Secure: &yes, AutoPause: &no,
		Network: &api.SandboxNetworkConfig{AllowPublicTraffic: &no}}
	allowOut(&in, spec.Network)
	var out api.Sandbox
	a, err := b.control.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"sandboxes"}, In: in, Out: &out, Turn: b.creates,
		Begin: func() error { timeout = seconds(spec.Deadline); return spec.InTime(time.Now()) },
		Is:    func() bool { return refName.MatchString(out.SandboxID) }})
	switch gone := a.Own && a.Status == http.StatusNotFound && spec.FromSnapshot == nil && spec.FromSandbox == ""; {
	case gone && spec.Image != nil:
		return "", false, extensions.Errorf(extensions.KindUnavailable, "the template of its image was removed meanwhile: %w", err).
			WithRemedy("create it again")
	case gone:
		return "", false, extensions.Errorf(extensions.KindUnsupported, "%s has no template %q: %w", vendor, extensions.Clean(template, 80), err).
			WithRemedy("name one of the team's templates in options.template or in the binding's config")
	}
	if left = extensions.MayBeDone(err); err != nil && !left && spec.FromSandbox != "" {
		left = b.dropped(context.WithoutCancel(ctx), template) != nil
	}
	return out.SandboxID, left, err
}

// everywhere is what default deny denies; allowed destinations take precedence.
const everywhere = "0.0.0.0/0"

func allowOut(in *api.NewSandbox, n extensions.Network) {
	internet := n.Needs() == extensions.EgressNone
	in.AllowInternetAccess = &internet
	if internet || len(n.Egress) == 0 {
		return
	}
	networks, names := n.Allowed()
	allowed := slices.Concat(networks, names)
	in.Network.AllowOut, in.Network.DenyOut = &allowed, &[]string{everywhere}
}
