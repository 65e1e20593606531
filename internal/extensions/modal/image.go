package modal

import (
	"context"

	sdk "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// noEntrypoint keeps an image's own program from running instead of what a sandbox waits with.
const noEntrypoint = "ENTRYPOINT []"

// PrepareImage implements extensions.ImagePreparer: the vendor pulls or builds the image, and keeps it.
func (b *backend) PrepareImage(ctx context.Context, spec extensions.Spec) (digest string, err error) {
	defer named("prepare-image", spec.ID, &err)
	if err := b.refuseContent(spec); err != nil {
		return "", err
	}
	app, err := b.application(ctx, true)
	if err != nil {
		return "", err
	}
	_, digest, err = b.image(ctx, app, spec)
	return digest, err
}

// recipes are those of a spec's image.
func (b *backend) recipes(ctx context.Context, spec extensions.Spec) (compose.Rendered, []compose.Recipe, string, error) {
	return compose.Recipes(ctx, vendor, spec.Image, spec.Workspace.Source, b.settings.image)
}

// image returns the image of a spec, and what the contract calls its digest. The vendor builds it once for all who ask.
func (b *backend) image(ctx context.Context, app *sdk.App, spec extensions.Spec) (made *sdk.Image, digest string, err error) {
	if s := spec.FromSnapshot; s != nil {
		return &sdk.Image{ImageID: s.Handle.Ref}, "", nil
	}
	files, all, digest, err := b.recipes(ctx, spec)
	if err != nil {
		return nil, "", err
	}
	var last string
	ids := map[string]string{} // the tag of a recipe -> the vendor's name of its image
	for n, r := range all {
		if n == len(all)-1 {
			r.Lines = append(r.Lines, noEntrypoint)
		}
		in := pb.Image_builder{DockerfileCommands: r.Lines}
		if in.ImageRegistryConfig, err = b.login(ctx, spec.Registries, r.Takes); err != nil {
			return nil, "", err
		}
		if x := r.Build; x != nil {
			in.BuildArgs = x.Args
			if tag := x.Args[compose.ArgParentTag]; ids[tag] != "" {
				in.BaseImages = []*pb.BaseImage{pb.BaseImage_builder{DockerTag: tag, ImageId: ids[tag]}.Build()}
			}
			if in.ContextMountId, err = b.bring(ctx, files, *x); err != nil {
				return nil, "", compose.CutOff(err)
			}
		}
		if last, err = b.built(ctx, app, r, in.Build()); err != nil {
			return nil, "", compose.CutOff(err)
		}
		if r.Build != nil {
			ids[r.Build.Tag] = last
		}
	}
	return &sdk.Image{ImageID: last}, digest, nil
}

// login is how the vendor gets the images of a registry, nil = without a login. Its secret has no name, so it belongs to
// the app and has no other use.
func (b *backend) login(ctx context.Context, known extensions.Registries, images []string) (*pb.ImageRegistryConfig, error) {
	user, password, err := ociimage.Login(ctx, known, images...)
	if err != nil || user == "" {
		return nil, err
	}
	secret, err := b.control.SecretGetOrCreate(ctx, pb.SecretGetOrCreateRequest_builder{EnvironmentName: b.environment,
		ObjectCreationType: pb.ObjectCreationType_OBJECT_CREATION_TYPE_EPHEMERAL,
		EnvDict:            map[string]string{"REGISTRY_USERNAME": user, "REGISTRY_PASSWORD": password}}.Build())
	return pb.ImageRegistryConfig_builder{RegistryAuthType: pb.RegistryAuthType_REGISTRY_AUTH_TYPE_STATIC_CREDS,
		SecretId: secret.GetSecretId()}.Build(), err
}
