package vercel

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckSpec implements extensions.SpecChecker.
func (x extension) CheckSpec(_ context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	b, err := bound(x, cfg)
	if err == nil {
		err = b.refuseContent(spec)
	}
	return nil, failed("check", spec.ID, err)
}

// refuse names what cannot be rented here, before anything is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	if err := spec.CheckIdentity(time.Now()); err != nil {
		return err
	}
	if time.Until(spec.Deadline) > b.plan.longest {
		return b.tooLong()
	}
	return b.refuseContent(spec)
}

func (b *backend) tooLong() error {
	return extensions.Errorf(extensions.KindUnsupported, "the plan ends a sandbox after %s", b.plan.longest).At("ttl").
		WithRemedy("shorten ttl; if the team's plan allows more, set `plan` in the binding's config to that plan")
}

// refuseContent is the part of refuse about what was asked for.
func (b *backend) refuseContent(spec extensions.Spec) error {
	if err := b.desc.Accept(spec); err != nil {
		return err
	}
	unsupported := func(field, format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindUnsupported, format, args...).At(field)
	}
	cpu := spec.Resources.RoundUp(b.desc.Capabilities).CPU
	switch {
	case spec.Image != nil || spec.Compose != nil || spec.Containers != nil:
		return unsupported("image", "%s runs only its own images and those of the project's repository", vendor).
			WithRemedy("push the image to the project's repository and name it in options.image, or choose another place")
	case extensions.Text(spec.Options, fieldImage) != "" && extensions.Text(spec.Options, fieldRuntime) != "":
		return extensions.Errorf(extensions.KindInvalid, "options.image and options.runtime both say what it runs").At("options.runtime").
			WithRemedy("remove one of them")
	case cpu != nil && int64(*cpu) > b.plan.cpus*1000:
		return unsupported("resources", "the plan's largest sandbox has %d vCPU and %d MiB, and this one needs %d milli-vCPU", b.plan.cpus,
			b.plan.cpus*memoryPerCPU, *cpu).WithRemedy("request less; memory comes with the vCPUs, %d MiB each", memoryPerCPU)
	}
	return nil
}
