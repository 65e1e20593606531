package modal

import (
	"cmp"
	"context"
	"path"
	"slices"
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
		_, _, err = planned(ctx, spec, "")
	}
	return nil, err
}

// refuse names what cannot be rented here, before anything is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	now := time.Now()
	if err := spec.CheckIdentity(now); err != nil {
		return err
	}
	if s := spec.FromSnapshot; s != nil && checkSnapshot(s.Handle) != nil {
		return extensions.Errorf(extensions.KindInvalid, "the snapshot is not one of %s", vendor).At("from_snapshot")
	}
	if spec.Deadline.Sub(now) > longest {
		return extensions.Errorf(extensions.KindUnsupported, "%s runs no sandbox for longer than %s", vendor, longest).At("ttl").
			WithRemedy("shorten ttl, or choose another place")
	}
	return b.refuseContent(spec)
}

// refuseContent is the part of refuse about what was asked for.
func (b *backend) refuseContent(spec extensions.Spec) error {
	if err := b.desc.Accept(spec); err != nil {
		return err
	}
	unsupported := func(field, format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindUnsupported, format, args...).At(field)
	}
	dir, gpu := workDirOf(spec), spec.Resources.GPU
	switch {
	case spec.Compose != nil || spec.Containers != nil:
		return unsupported("image", "%s runs one image: no stacks of containers", vendor).WithRemedy("use image, or choose another place")
	case spec.Region != "" && spec.Region != cmp.Or(b.region, unstated):
		return unsupported("region", "%s is not asked for the region %q", vendor, spec.Region).
			WithRemedy("set `region` in the binding's config if the workspace's sandboxes run there")
	case gpu != nil && gpu.Count > 0 && !slices.Contains(gpus, gpu.Model):
		return unsupported("resources.gpu.model", "%s has no GPU %q", vendor, extensions.Clean(gpu.Model, 40)).WithRemedy("name one of %v", gpus)
	case dir != "" && (!path.IsAbs(dir) || dir == "/"):
		return extensions.Errorf(extensions.KindInvalid, "options.workdir: %q is not an absolute folder below /", extensions.Clean(dir, 80)).
			At("options.workdir")
	}
	return nil
}
