package command

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckSpec implements extensions.SpecChecker. It looks at the program's file and does not run it.
func (x extension) CheckSpec(_ context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	b, err := x.open(cfg)
	if err == nil {
		err = b.refuseContent(spec)
	}
	return nil, failed("check", spec.ID, err)
}

// refuse names what cannot be made, before the program is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	if err := spec.CheckIdentity(time.Now()); err != nil {
		return err
	}
	return b.refuseContent(spec)
}

func (b *backend) refuseContent(spec extensions.Spec) error {
	unsupported := func(field, why string) *extensions.Error {
		return extensions.Errorf(extensions.KindUnsupported, "%s", why).At(field).
			WithRemedy("remove %s from the profile, or choose another place", field)
	}
	switch {
	case spec.Image != nil || spec.Compose != nil || spec.Containers != nil:
		return unsupported("image", "a program gets no images and no stacks").
			WithRemedy("name what it runs in options.input, as the program's author says, or choose another place")
	case spec.Workspace.Access == extensions.AccessRO:
		return unsupported("workspace.access", "workspaces cannot be read-only here")
	case b.desc.Has(extensions.PowerExec):
	case spec.Workspace.Repo != "" || spec.Workspace.Source != nil:
		return unsupported("workspace", "files come inside by exec, which the program does not declare")
	case spec.Instructions != "":
		return unsupported("setup.instructions", "files come inside by exec, which the program does not declare")
	case spec.Readiness != nil:
		return unsupported("readiness", "a probe is a command inside, and the program does not declare exec")
	}
	return b.desc.Accept(spec)
}
