package daytona

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckSpec implements extensions.SpecChecker.
func (x extension) CheckSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) (_ []string, err error) {
	defer tell("check", spec.ID, &err)
	b, err := bound(x, cfg)
	if err == nil {
		err = b.refuse(spec)
	}
	if err == nil && spec.Image != nil && !spec.BuildsFromUnknown() {
		_, err = b.built(ctx, spec, false)
	}
	return nil, err
}

// refuse names what cannot be rented here, before anything is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	if err := b.desc.Accept(spec); err != nil {
		return err
	}
	unsupported := func(field, format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindUnsupported, format, args...).At(field)
	}
	r := spec.Resources
	copied := spec.FromSnapshot != nil || spec.FromSandbox != ""
	switch {
	case spec.Compose != nil || spec.Containers != nil:
		return unsupported("image", "%s runs one image: no stacks of containers", vendor).
			WithRemedy("use image, or name a snapshot in options.snapshot, or choose another place")
	case spec.Image != nil && b.vm:
		return unsupported("image", "%s creates virtual machines only from its snapshots", vendor).
			WithRemedy("create a snapshot of class %s there and name it in options.snapshot, or use a binding of class %s", classVM, classContainer)
	case spec.Image != nil && extensions.Text(spec.Options, fieldSnapshot) != "":
		return extensions.Errorf(extensions.KindInvalid, "image and options.snapshot each name an image").At("options.snapshot").
			WithRemedy("remove one of them")
	case spec.Image == nil && !copied && r.GPU != nil && r.GPU.Count > 0:
		return unsupported("resources.gpu", "%s gives GPUs only to what it builds from an image", vendor).
			WithRemedy("name an image, or drop resources.gpu")
	}
	return nil
}
