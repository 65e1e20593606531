package modal

import (
	"cmp"
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckSpec implements extensions.SpecChecker.
func (x extension) CheckSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) (notes []string, err error) {
	defer named("check", spec.ID, &err)
	b, err := x.at(cfg)
	if err == nil {
		err = b.refuseContent(spec)
	}
	if err == nil && spec.Image != nil && !spec.BuildsFromUnknown() {
		_, _, _, err = b.recipes(ctx, spec)
	}
	return nil, err
}

// refuse names what cannot be rented here, before anything is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	return cmp.Or(b.desc.AcceptNow(spec, time.Now()), b.CheckFrom(spec.FromSnapshot), b.refuseContent(spec))
}

// refuseContent is the part of refuse about what was asked for.
func (b *backend) refuseContent(spec extensions.Spec) error {
	if g := spec.Resources.GPU; g != nil && g.Count > 0 && g.Model == "" {
		return extensions.Errorf(extensions.KindUnsupported, "%s provides GPUs only by model", vendor).At("resources.gpu.model").
			WithRemedy("name one of %v", gpus)
	}
	if n := spec.Network; len(b.public) > 0 && n.Needs() != extensions.EgressNone && len(n.Egress) == 0 {
		return extensions.Errorf(extensions.KindUnsupported, "%s opens no tunnel of a sandbox whose network it denies altogether", vendor).
			At("network").WithRemedy("name a destination in network.egress, or use a binding without config.%s", fieldPublic)
	}
	return b.desc.Accept(spec)
}
