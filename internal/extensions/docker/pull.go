package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// have finds an image, and pulls it if it is not there for the platform.
func (b *Backend) have(ctx context.Context, spec extensions.Spec, base compose.Base) (client.ImageInspectResult, error) {
	r, err := b.engine.ImageInspect(ctx, base.Image)
	if err != nil && !errdefs.IsNotFound(err) || err == nil && runsOn(r, base.Platform) {
		return r, err
	}
	if err := b.pull(ctx, spec, base); err != nil {
		return r, err
	}
	return b.engine.ImageInspect(ctx, base.Image)
}

func runsOn(r client.ImageInspectResult, platform string) bool {
	return platform == "" || strings.HasPrefix(platform+"/", r.Os+"/"+r.Architecture+"/")
}

func (b *Backend) pull(ctx context.Context, spec extensions.Spec, base compose.Base) error {
	o := client.ImagePullOptions{}
	if os, arch, ok := strings.Cut(base.Platform, "/"); ok {
		arch, variant, _ := strings.Cut(arch, "/")
		o.Platforms = []ocispec.Platform{{OS: os, Architecture: arch, Variant: variant}}
	}
	login, err := loginFor(ctx, spec.Registries, base.Image)
	if err != nil {
		return err
	}
	o.RegistryAuth = login
	subject := "Pulling the image " + base.Image
	extensions.Progress(ctx, subject, "")
	r, err := b.engine.ImagePull(ctx, base.Image, o)
	if err == nil {
		err = b.follow(ctx, subject, r)
	}
	if err == nil || ctx.Err() != nil || noEngine(err) {
		return err
	}
	kind, remedy := judgePull(err.Error())
	if host := ociimage.Registry(base.Image); kind == extensions.KindUnauthorized {
		remedy = fmt.Sprintf("set registries of the binding: {%q: {username: …, password: env://…}}", host)
		if login != "" {
			remedy = fmt.Sprintf("check username and password of %q in registries of the binding", host)
		}
	}
	return extensions.Errorf(kind, "the image %s is not here and cannot be pulled: %s", extensions.Clean(base.Image, 200),
		extensions.Clean(err.Error(), maxMessage)).WithRemedy("%s", remedy)
}

// loginFor returns what the engine's client sends for the registry of an image; "" = nothing. It is in a header of one
// call, and the engine keeps none of it.
func loginFor(ctx context.Context, all extensions.Registries, image string) (string, error) {
	host := ociimage.Registry(image)
	login, ok := all[host]
	if !ok {
		return "", nil
	}
	password, err := login.Password(ctx)
	if err != nil {
		return "", err
	}
	address := host
	if host == extensions.DefaultRegistry {
		address = "https://index.docker.io/v1/"
	}
	return authconfig.Encode(registry.AuthConfig{Username: login.Username, Password: password.Reveal(), ServerAddress: address})
}

// follow reads a pull to its end, and tells how much of it is done.
func (b *Backend) follow(ctx context.Context, subject string, r client.ImagePullResponse) error {
	defer func() { _ = r.Close() }()
	type layer struct{ done, total int64 }
	layers := map[string]layer{}
	for m, err := range r.JSONMessages(ctx) {
		switch {
		case err != nil:
			return err
		case m.Error != nil:
			return m.Error
		case m.Progress == nil || m.Status != "Downloading" || len(layers) > maxLayers:
			continue
		}
		layers[m.ID] = layer{m.Progress.Current, m.Progress.Total}
		var all layer
		for _, l := range layers {
			all.done, all.total = all.done+l.done, all.total+l.total
		}
		extensions.Progress(ctx, subject, fmt.Sprintf("%d of %d MiB", all.done>>20, all.total>>20))
	}
	return nil
}

// maxLayers bounds the layers of a pull whose progress is told.
const maxLayers = 1000

const loginRemedy = "set the login of its registry in registries of the binding"

// judgePull classifies a registry's or a connection's answer, which engines pass on as text.
func judgePull(text string) (kind extensions.Kind, remedy string) {
	for _, r := range []struct {
		kind   extensions.Kind
		remedy string
		says   []string
	}{
		{extensions.KindExhausted, "free some disk space where the engine runs", []string{"no space left on device"}},
		{extensions.KindInvalid, "correct the name of the image", []string{"invalid reference format"}},
		// Before "access denied", which engines with containerd's image store say of both.
		{extensions.KindUnauthorized, loginRemedy, []string{"no basic auth", "401 Unauthorized"}},
		{extensions.KindUnsupported, "check the name of the image; a private one needs a login, in registries of the binding",
			[]string{"manifest unknown", "pull access denied", "repository does not exist", "not found", "no matching manifest"}},
		{extensions.KindUnauthorized, loginRemedy, []string{"unauthorized", "denied: "}},
	} {
		if slices.ContainsFunc(r.says, func(s string) bool { return strings.Contains(text, s) }) {
			return r.kind, r.remedy
		}
	}
	return extensions.KindUnavailable, "check the engine's way to the registry, or load the image there"
}
