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
func (x extension) CheckSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	s, err := parseConfig(cfg)
	if err == nil {
		b := &backend{settings: s}
		if b.desc, err = extensions.Declared(x, cfg.Values); err == nil {
			err = b.refuseContent(spec)
		}
	}
	if err == nil && spec.Image != nil {
		_, _, err = pulled(ctx, spec, "")
	}
	return nil, failed("check", spec.ID, err)
}

// refuse names what cannot be rented here, before anything is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	if _, err := extensions.ParseID(string(spec.ID)); err != nil {
		return err
	}
	if s := spec.FromSnapshot; s != nil && (s.Source != nil || checkSnapshot(s.Handle) != nil) {
		return extensions.Errorf(extensions.KindInvalid, "the snapshot is not one of %s", vendor).At("from_snapshot")
	}
	switch left := time.Until(spec.Deadline); {
	case left <= 0:
		return extensions.Errorf(extensions.KindInvalid, "the deadline has passed").At("ttl")
	case left > longest:
		return extensions.Errorf(extensions.KindUnsupported, "%s runs no sandbox for longer than %s", vendor, longest).At("ttl").
			WithRemedy("shorten ttl, or choose another place")
	}
	return b.refuseContent(spec)
}

// refuseContent is the part of refuse about what was asked for.
func (b *backend) refuseContent(spec extensions.Spec) error {
	unsupported := func(field, format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindUnsupported, format, args...).At(field)
	}
	c, r := b.desc.Capabilities, spec.Resources
	strongest := c.IsolationLevels[len(c.IsolationLevels)-1]
	switch {
	case spec.Isolation != "" && !strongest.Meets(spec.Isolation):
		return unsupported("isolation", "isolation %q is above what %s offers here (%v)", spec.Isolation, vendor, c.IsolationLevels)
	case spec.Compose != nil || spec.Containers != nil:
		return unsupported("image", "%s runs one image: no stacks of containers", vendor).WithRemedy("use image, or choose another place")
	case spec.Image != nil && spec.Image.Pull == "":
		return unsupported("image.build", "sandboxer builds no images at %s", vendor).
			WithRemedy("push the image to a public registry and name it in image.pull, or choose another place")
	case spec.FromSandbox != "":
		return unsupported("from_sandbox", "%s makes no copies of live sandboxes", vendor).WithRemedy("take a snapshot and start from it")
	case r.DiskMB != nil && !r.BestEffort:
		return unsupported("resources.disk_mb", "%s takes no size of the disk", vendor).WithRemedy("drop it, or set resources.best_effort")
	case r.Pids != nil && !r.BestEffort:
		return unsupported("resources.pids", "%s takes no number of processes", vendor).WithRemedy("drop it, or set resources.best_effort")
	case spec.Workspace.Access == extensions.AccessRO:
		return unsupported("workspace.access", "a sandbox's user is root, so nothing holds a workspace read-only").
			WithRemedy("set workspace.access: rw or none")
	case spec.Delivery() != extensions.SecretsEnv && len(spec.Secrets) > 0:
		return unsupported("secrets_as", "snapshots keep all files, so secrets cannot come as files that nothing keeps").
			WithRemedy("set secrets_as: env, or choose another place")
	case spec.Region != "" && spec.Region != cmp.Or(b.region, unstated):
		return unsupported("region", "%s is not asked for the region %q", vendor, spec.Region).
			WithRemedy("set `region` in the binding's config if the workspace's sandboxes run there")
	}
	if d := workDirOf(spec); d != "" && (!path.IsAbs(d) || d == "/") {
		return extensions.Errorf(extensions.KindInvalid, "options.workdir: %q is not an absolute folder below /", extensions.Clean(d, 80)).
			At("options.workdir")
	}
	return cmp.Or(refuseGPU(r.GPU), c.CheckEntrypoint(spec.Entrypoint), c.CheckEgress(spec.Network), c.CheckIdleReap(spec.IdleReap),
		spec.CheckSecrets())
}

func refuseGPU(g *extensions.GPU) error {
	if g == nil || g.Count == 0 || slices.Contains(gpus, g.Model) {
		return nil
	}
	return extensions.Errorf(extensions.KindUnsupported, "%s has no GPU %q", vendor, extensions.Clean(g.Model, 40)).At("resources.gpu.model").
		WithRemedy("name one of %v", gpus)
}
