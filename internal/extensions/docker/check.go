package docker

import (
	"cmp"
	"context"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// CheckSpec implements extensions.SpecChecker.
func (extension) CheckSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("check", spec.ID, err)
	}
	s, err := parseConfig(cfg)
	switch {
	case err != nil:
	case spec.BuildsFromUnknown():
		err = acceptRequest(s, spec)
	default:
		_, err = newPlan(ctx, s, spec)
	}
	return nil, failed("check", spec.ID, err)
}

// acceptRequest refuses what no engine can honor.
func acceptRequest(s settings, spec extensions.Spec) error {
	unsupported := func(remedy, format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindUnsupported, format, args...).WithRemedy("%s", remedy)
	}
	switch {
	case spec.Compose != nil:
		return unsupported("use ext.compose-ssh, or describe the containers in the profile", "a Compose file needs Docker Compose").At("compose")
	case !spec.Entrypoint.Idle() && spec.Containers != nil:
		return extensions.Errorf(extensions.KindInvalid, "containers have their own commands").At("entrypoint").
			WithRemedy("set containers.agent.command, or use image")
	case spec.Image == nil && spec.Containers == nil && s.defaultImage == "":
		return extensions.Errorf(extensions.KindInvalid, "the profile has no image or containers, so there is nothing to run").
			WithRemedy("set one of them in the profile, or config.default_image of the binding")
	case !slices.Contains([]string{"", extensions.AccessNone, extensions.AccessRO, extensions.AccessRW}, spec.Workspace.Access):
		return extensions.Errorf(extensions.KindInvalid, "workspace.access %q is unknown", spec.Workspace.Access)
	}
	if err := cmp.Or((extension{}).Describe().Accept(spec), checkIdle(spec)); err != nil {
		return err
	}
	if err := ready.Check(spec.Readiness, "http", "https"); err != nil {
		return err
	}
	for name := range spec.Secrets {
		if spec.Delivery() == extensions.SecretsEnv && !shellName.MatchString(name) {
			return unsupported("deliver secrets as files, or use another name", "the secret %q cannot be a variable of a shell", name).At("secrets")
		}
	}
	return nil
}
