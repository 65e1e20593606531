package modal

import (
	"context"

	sdk "github.com/modal-labs/modal-client/go"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// noID stands for the sandbox where images are read: they are the same for all, and a plan has none yet.
const noID extensions.ID = "sbx-aaaaaaaaaaaaaaaaaaaa"

// noEntrypoint keeps an image's own program from running instead of what a sandbox waits with.
var noEntrypoint = []string{"ENTRYPOINT []"}

// PrepareImage implements extensions.ImagePreparer: the vendor pulls the image, and keeps it.
func (b *backend) PrepareImage(ctx context.Context, spec extensions.Spec) (string, error) {
	digest, err := b.prepareImage(ctx, spec)
	return digest, failed("prepare-image", spec.ID, err)
}

func (b *backend) prepareImage(ctx context.Context, spec extensions.Spec) (string, error) {
	if err := b.refuseContent(spec); err != nil {
		return "", err
	}
	app, err := b.application(ctx, true)
	if err != nil {
		return "", err
	}
	if _, err := b.image(ctx, app, spec); err != nil {
		return "", err
	}
	_, digest, err := pulled(ctx, spec, b.settings.image)
	return digest, err
}

// pulled is the image that a spec names, else otherwise, and what the contract calls its digest.
func pulled(ctx context.Context, spec extensions.Spec, otherwise string) (ref, digest string, err error) {
	if spec.Image == nil {
		return otherwise, "sha256:" + ociimage.Key(otherwise), nil
	}
	p, err := compose.FromImage(ctx, *spec.Image, nil)
	if err != nil {
		return "", "", err
	}
	r, err := p.Render(compose.RenderOptions{ID: noID, Service: compose.AgentService, Network: compose.NetworkAllow})
	if err != nil {
		return "", "", err
	}
	return r.Pulls[0].Image, r.PrepareDigest(), nil
}

// image returns the image of a spec. The vendor builds it once for all who ask.
func (b *backend) image(ctx context.Context, app *sdk.App, spec extensions.Spec) (*sdk.Image, error) {
	if s := spec.FromSnapshot; s != nil {
		return &sdk.Image{ImageID: s.Handle.Ref}, nil
	}
	ref, _, err := pulled(ctx, spec, b.settings.image)
	if err != nil {
		return nil, err
	}
	var params *sdk.ImageFromRegistryParams
	if login, ok := spec.Registries[ociimage.Registry(ref)]; ok {
		password, err := login.Password(ctx)
		if err != nil {
			return nil, err
		}
		// A secret without a name belongs to the app and has no other use.
		secret, err := b.sdk.Secrets.FromMap(ctx, map[string]string{"REGISTRY_USERNAME": login.Username, "REGISTRY_PASSWORD": password.Reveal()},
			&sdk.SecretFromMapParams{Environment: b.environment})
		if err != nil {
			return nil, known(err)
		}
		params = &sdk.ImageFromRegistryParams{Secret: secret}
	}
	extensions.Progress(ctx, "Preparing the image "+ref, "")
	image, err := b.sdk.Images.FromRegistry(ref, params).DockerfileCommands(noEntrypoint, nil).Build(ctx, app, nil)
	if err = known(err); maybe(err) || extensions.IsKind(err, extensions.KindNotFound) {
		err = extensions.Errorf(extensions.KindUnavailable, "the image was not ready in time: %w", err).WithRemedy("try again: the build goes on")
	}
	return image, err
}
