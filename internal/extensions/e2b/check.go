package e2b

import (
	"cmp"
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckSpec implements extensions.SpecChecker.
func (x extension) CheckSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	s, err := parseConfig(cfg)
	if err == nil {
		b := &backend{settings: s}
		if b.desc, err = extensions.Declared(x, cfg.Values); err == nil {
			err = b.refuseContent(spec)
		}
	}
	var notes []string
	if err == nil && spec.Image != nil && !spec.BuildsFromUnknown() {
		var t *built
		t, _, err = planned(ctx, spec)
		for ; err == nil && t != nil; t = t.parent {
			notes = append(notes, t.notes...)
		}
	}
	return notes, failed("check", spec.ID, err)
}

// refuse names what cannot be rented here, before anything is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	return cmp.Or(spec.CheckIdentity(time.Now()), b.CheckFrom(spec.FromSnapshot), b.refuseContent(spec))
}

// refuseContent is the part of refuse about what was asked for.
func (b *backend) refuseContent(spec extensions.Spec) error {
	switch {
	case spec.Image != nil && extensions.Text(spec.Options, fieldTemplate) != "":
		return extensions.Errorf(extensions.KindInvalid, "image and options.template each set a template").
			At("options.template").WithRemedy("remove one of them")
	case !spec.Resources.BestEffort && len(spec.Resources.Limits()) > 0:
		return extensions.Errorf(extensions.KindUnsupported, "the template sets the size, so the profile cannot").At("resources").
			WithRemedy("drop resources, or set resources.best_effort and name a template of the size you want")
	}
	return b.desc.Accept(spec)
}
