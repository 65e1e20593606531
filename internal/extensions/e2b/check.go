package e2b

import (
	"cmp"
	"context"
	"path"
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
	if _, err := extensions.ParseID(string(spec.ID)); err != nil {
		return err
	}
	if s := spec.FromSnapshot; s != nil && (s.Handle.Extension != Handler || !snapshotRef.MatchString(s.Handle.Ref)) {
		return extensions.Errorf(extensions.KindInvalid, "the snapshot is not one of %s", vendor).At("from_snapshot")
	}
	if left := time.Until(spec.Deadline); left <= 0 {
		return extensions.Errorf(extensions.KindInvalid, "the deadline has passed").At("ttl")
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
		return unsupported("isolation", "isolation %q is above what %s offers (%v)", spec.Isolation, vendor, c.IsolationLevels)
	case spec.Compose != nil || spec.Containers != nil:
		return unsupported("image", "%s runs one image: no stacks of containers", vendor).
			WithRemedy("use image, or name a template in options.template, or choose another place")
	case spec.Image != nil && extensions.Text(spec.Options, fieldTemplate) != "":
		return extensions.Errorf(extensions.KindInvalid, "an image becomes a template of its own, and options.template names another").
			At("options.template").WithRemedy("remove one of them")
	case !r.BestEffort && len(r.Limits()) > 0:
		return unsupported("resources", "the template sets the size, so no other can be asked for").
			WithRemedy("drop resources, or set resources.best_effort and name a template of that size")
	case r.GPU != nil && r.GPU.Count > 0:
		return unsupported("resources.gpu", "%s has no GPUs", vendor)
	case spec.Workspace.Access == extensions.AccessRO:
		return unsupported("workspace.access", "a user inside %s can become root, so nothing holds a workspace read-only", vendor).
			WithRemedy("set workspace.access: rw or none")
	case spec.Delivery() != extensions.SecretsEnv && len(spec.Secrets) > 0:
		return unsupported("secrets_as", "snapshots and pauses keep the memory, so secrets cannot come as files that nothing keeps").
			WithRemedy("set secrets_as: env, or choose another place")
	case spec.Region != "" && spec.Region != cmp.Or(b.region, unstated):
		return unsupported("region", "%s cannot be asked for the region %q", vendor, spec.Region).
			WithRemedy("set `region` in the binding's config if the team's sandboxes run there")
	}
	if d := workDirOf(spec); d != "" && (!path.IsAbs(d) || d == "/") {
		return extensions.Errorf(extensions.KindInvalid, "options.workdir: %q is not an absolute folder below /", extensions.Clean(d, 80)).
			At("options.workdir")
	}
	return cmp.Or(c.CheckEntrypoint(spec.Entrypoint), c.CheckEgress(spec.Network), c.CheckIdleReap(spec.IdleReap), spec.CheckSecrets())
}
