package daytona

import (
	"cmp"
	"context"
	"path"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckSpec implements extensions.SpecChecker.
func (x extension) CheckSpec(_ context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	s, err := parseConfig(cfg)
	if err == nil {
		b := &backend{settings: s}
		if b.desc, err = extensions.Declared(x, cfg.Values); err == nil {
			err = b.refuseContent(spec)
		}
	}
	return nil, failed("check", spec.ID, err)
}

// refuse names what cannot be rented here, before anything is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	if _, err := extensions.ParseID(string(spec.ID)); err != nil {
		return err
	}
	if spec.Account != b.account {
		return extensions.Errorf(extensions.KindInvalid, "the sandbox is of another account")
	}
	if time.Until(spec.Deadline) <= 0 {
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
	gpus := r.GPU != nil && r.GPU.Count > 0
	switch {
	case spec.Isolation != "" && !extensions.IsolationContainer.Meets(spec.Isolation):
		return unsupported("isolation", "isolation %q is above what %s offers (%v)", spec.Isolation, vendor, c.IsolationLevels)
	case spec.FromSnapshot != nil || spec.FromSandbox != "":
		return unsupported("from_snapshot", "a sandbox of %s cannot be made from another one", vendor)
	case spec.Compose != nil || spec.Containers != nil:
		return unsupported("image", "%s runs one image: no stacks of containers", vendor).
			WithRemedy("use image, or name a snapshot in options.snapshot, or choose another place")
	case spec.Image != nil && len(spec.Image.AllStages()) > 0:
		return unsupported("image", "%s takes images of a registry: none that is built from a folder", vendor).
			WithRemedy("use image.pull, or choose another place")
	case spec.Image != nil && strings.ContainsAny(spec.Image.Pull, " \t\r\n"):
		return extensions.Errorf(extensions.KindInvalid, "%q is not the name of an image", extensions.Clean(spec.Image.Pull, 80)).At("image")
	case spec.Image != nil && extensions.Text(spec.Options, fieldSnapshot) != "":
		return extensions.Errorf(extensions.KindInvalid, "options.snapshot names another image than image does").At("options.snapshot").
			WithRemedy("remove one of them")
	case spec.Image == nil && (!r.BestEffort && len(r.Limits()) > 0 || gpus):
		return unsupported("resources", "the snapshot sets the size, so no other can be asked for").
			WithRemedy("name an image, or drop resources, or set resources.best_effort and name a snapshot of that size")
	case r.Pids != nil && !r.BestEffort:
		return unsupported("resources.pids", "%s does not limit processes", vendor).WithRemedy("drop it, or set resources.best_effort")
	case gpus && !c.GPU:
		return unsupported("resources.gpu", "this installation of %s offers no GPUs", vendor)
	case spec.Workspace.Access == extensions.AccessRO:
		return unsupported("workspace.access", "a user inside %s can become root, so nothing holds a workspace read-only", vendor).
			WithRemedy("set workspace.access: rw or none")
	case spec.Delivery() != extensions.SecretsEnv && len(spec.Secrets) > 0:
		return unsupported("secrets_as", "%s has no files that only memory keeps", vendor).
			WithRemedy("set secrets_as: env, or choose another place")
	}
	if d := workDirOf(spec); d != "" && (!path.IsAbs(d) || d == "/") {
		return extensions.Errorf(extensions.KindInvalid, "options.workdir: %q is not an absolute folder below /", extensions.Clean(d, 80)).
			At("options.workdir")
	}
	return cmp.Or(c.CheckEntrypoint(spec.Entrypoint), c.CheckEgress(spec.Network), c.CheckIdleReap(spec.IdleReap), spec.CheckSecrets())
}
