package modal

import (
	"context"
	"strings"

	sdk "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// noEntrypoint keeps an image's own program from running instead of what a sandbox waits with.
const noEntrypoint = "ENTRYPOINT []"

// recipe is how one image comes to be: the lines of a Dockerfile, and what they take.
type recipe struct {
	what  string // for people
	lines []string
	takes []string       // images of registries
	build *compose.Build // nil = an image as it is
	in    compose.Rendered
}

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
	if _, err := b.image(ctx, app, spec); err != nil {
		return "", err
	}
	_, digest, err = planned(ctx, spec, b.settings.image)
	return digest, err
}

// planned returns the recipes of a spec's image in order, the last one's is run, and what the contract calls its digest.
func planned(ctx context.Context, spec extensions.Spec, otherwise string) (all []recipe, digest string, err error) {
	pull := func(image string) []recipe {
		return []recipe{{what: "the image " + image, lines: []string{"FROM " + image}, takes: []string{image}}}
	}
	if spec.Image == nil {
		return pull(otherwise), "sha256:" + ociimage.Key(otherwise), nil
	}
	in, err := compose.Prepare(ctx, *spec.Image, spec.Workspace.Source)
	if err != nil {
		return nil, "", err
	}
	if len(in.Builds) == 0 {
		return pull(in.Pulls[0].Image), in.PrepareDigest(), nil
	}
	for i := range in.Builds {
		x := &in.Builds[i]
		if err := x.CheckVendor(vendor); err != nil {
			return nil, "", err
		}
		text, err := in.Dockerfile(*x)
		if err != nil {
			return nil, "", err
		}
		r := recipe{what: "the image of " + x.Dockerfile, lines: strings.Split(strings.TrimSpace(text), "\n"), build: x, in: in}
		for _, base := range x.Bases {
			r.takes = append(r.takes, base.Image)
		}
		all = append(all, r)
	}
	return all, in.PrepareDigest(), nil
}

// image returns the image of a spec. The vendor builds it once for all who ask.
func (b *backend) image(ctx context.Context, app *sdk.App, spec extensions.Spec) (*sdk.Image, error) {
	if s := spec.FromSnapshot; s != nil {
		return &sdk.Image{ImageID: s.Handle.Ref}, nil
	}
	all, _, err := planned(ctx, spec, b.settings.image)
	if err != nil {
		return nil, err
	}
	var last string
	made := map[string]string{} // the tag of a recipe -> the vendor's name of its image
	for n, r := range all {
		if n == len(all)-1 {
			r.lines = append(r.lines, noEntrypoint)
		}
		in := pb.Image_builder{DockerfileCommands: r.lines}
		if in.ImageRegistryConfig, err = b.login(ctx, spec.Registries, r.takes); err != nil {
			return nil, err
		}
		if x := r.build; x != nil {
			in.BuildArgs = x.Args
			if tag := x.Args[compose.ArgParentTag]; made[tag] != "" {
				in.BaseImages = []*pb.BaseImage{pb.BaseImage_builder{DockerTag: tag, ImageId: made[tag]}.Build()}
			}
			if in.ContextMountId, err = b.bring(ctx, r); err != nil {
				return nil, notBuilt(err)
			}
		}
		if last, err = b.built(ctx, app, r, in.Build()); err != nil {
			return nil, notBuilt(err)
		}
		if r.build != nil {
			made[r.build.Tag] = last
		}
	}
	return &sdk.Image{ImageID: last}, nil
}

// login is how the vendor gets the images of a registry, nil = without a login. Its secret has no name, so it belongs to
// the app and has no other use.
func (b *backend) login(ctx context.Context, known extensions.Registries, images []string) (*pb.ImageRegistryConfig, error) {
	for _, image := range images {
		login, ok := known[ociimage.Registry(image)]
		if !ok {
			continue
		}
		password, err := login.Password(ctx)
		if err != nil {
			return nil, err
		}
		secret, err := b.control.SecretGetOrCreate(ctx, pb.SecretGetOrCreateRequest_builder{EnvironmentName: b.environment,
			ObjectCreationType: pb.ObjectCreationType_OBJECT_CREATION_TYPE_EPHEMERAL,
			EnvDict:            map[string]string{"REGISTRY_USERNAME": login.Username, "REGISTRY_PASSWORD": password.Reveal()}}.Build())
		if err != nil {
			return nil, err
		}
		return pb.ImageRegistryConfig_builder{RegistryAuthType: pb.RegistryAuthType_REGISTRY_AUTH_TYPE_STATIC_CREDS,
			SecretId: secret.GetSecretId()}.Build(), nil
	}
	return nil, nil
}
