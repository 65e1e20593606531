package vercel

import (
	"cmp"
	"context"
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
	left := time.Until(spec.Deadline)
	switch {
	case left <= 0:
		return extensions.Errorf(extensions.KindInvalid, "the deadline has passed").At("ttl")
	case left > b.plan.longest:
		return b.tooLong()
	}
	return b.refuseContent(spec)
}

func (b *backend) tooLong() error {
	return extensions.Errorf(extensions.KindUnsupported, "the plan ends a sandbox after %s", b.plan.longest).At("ttl").
		WithRemedy("shorten ttl; if the team's plan allows more, set `plan` in the binding's config to the one it has")
}

// refuseContent is the part of refuse about what was asked for.
func (b *backend) refuseContent(spec extensions.Spec) error {
	unsupported := func(field, format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindUnsupported, format, args...).At(field)
	}
	c, r := b.desc.Capabilities, spec.Resources.RoundUp(b.desc.Capabilities)
	strongest := c.IsolationLevels[len(c.IsolationLevels)-1]
	switch {
	case spec.Isolation != "" && !strongest.Meets(spec.Isolation):
		return unsupported("isolation", "isolation %q is above what %s offers (%v)", spec.Isolation, vendor, c.IsolationLevels)
	case spec.Image != nil || spec.Compose != nil || spec.Containers != nil:
		return unsupported("image", "%s runs images of its own and of the project's repository only", vendor).
			WithRemedy("push the image to the project's repository and name it in options.image, or choose another place")
	case text(spec.Options, fieldImage) != "" && text(spec.Options, fieldRuntime) != "":
		return extensions.Errorf(extensions.KindInvalid, "options.image and options.runtime both say what it runs").At("options.runtime").
			WithRemedy("remove one of them")
	case r.CPU != nil && int64(*r.CPU) > b.plan.cpus*1000:
		return unsupported("resources", "the plan's largest sandbox has %d vCPU and %d MiB, and this one needs %d milli-vCPU", b.plan.cpus,
			b.plan.cpus*memoryPerCPU, *r.CPU).WithRemedy("ask for less; memory comes with the vCPUs, %d MiB each", memoryPerCPU)
	case !r.BestEffort && (r.DiskMB != nil || r.Pids != nil):
		return unsupported("resources", "%s limits neither disk nor processes", vendor).
			WithRemedy("drop disk_mb and pids, or set resources.best_effort")
	case r.GPU != nil && r.GPU.Count > 0:
		return unsupported("resources.gpu", "%s has no GPUs", vendor)
	case spec.Workspace.Access == extensions.AccessRO:
		return unsupported("workspace.access", "a user inside %s can become root, so nothing holds a workspace read-only", vendor).
			WithRemedy("set workspace.access: rw or none")
	case spec.Delivery() != extensions.SecretsEnv && len(spec.Secrets) > 0:
		return unsupported("secrets_as", "nothing inside %s is known to be in memory only, so secrets cannot come as files", vendor).
			WithRemedy("set secrets_as: env, or choose another place")
	case spec.FromSnapshot != nil:
		return unsupported("from_snapshot", "sandboxer takes no snapshots at %s", vendor)
	case spec.FromSandbox != "":
		return unsupported("from_sandbox", "sandboxer makes no forks at %s", vendor)
	}
	return cmp.Or(c.CheckEntrypoint(spec.Entrypoint), c.CheckEgress(spec.Network), c.CheckIdleReap(spec.IdleReap), spec.CheckSecrets())
}
