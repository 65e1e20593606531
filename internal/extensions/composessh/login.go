package composessh

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// login is one registry's, as the host's docker asks for it: by a helper that answers from its environment, named in
// a configuration without any secret. So nothing secret is in a file or an argument, whenever the script is killed.
type login struct {
	name   string // of its variables
	answer string // of docker-credential-sandboxer
	config string // config.json
}

// logins are those that a stack's images need, by the registry's host.
type logins map[string]login

// of names the login for an image; "" = none.
func (l logins) of(image string) string { return l[ociimage.Registry(image)].name }

// helper is the end of the name of the program that answers: docker-credential-sandboxer.
const helper = "sandboxer"

// hubNames are how docker's own registry is called when a helper is looked for.
var hubNames = []string{"docker.io", "index.docker.io", "https://index.docker.io/v1/"}

// loginsFor reads the passwords of the registries that a stack's images come from.
func loginsFor(ctx context.Context, known extensions.Registries, r compose.Rendered) (logins, error) {
	images := make([]string, 0, len(r.Pulls))
	for _, p := range r.Pulls {
		images = append(images, p.Image)
	}
	for _, b := range r.Builds {
		for _, base := range b.Bases {
			images = append(images, base.Image)
		}
	}
	all := logins{}
	for _, image := range images {
		host := ociimage.Registry(image)
		of, ok := known[host]
		if _, done := all[host]; done || !ok {
			continue
		}
		password, err := of.Password(ctx)
		if err != nil {
			return nil, err
		}
		names, helpers := []string{host}, map[string]string{}
		if host == extensions.DefaultRegistry {
			names = hubNames
		}
		for _, name := range names {
			helpers[name] = helper
		}
		answer, err := json.Marshal(map[string]string{"ServerURL": host, "Username": of.Username, "Secret": password.Reveal()})
		if err != nil {
			return nil, err
		}
		config, err := json.Marshal(map[string]any{"credHelpers": helpers})
		if err != nil {
			return nil, err
		}
		all[host] = login{name: strconv.Itoa(len(all)), answer: string(answer), config: string(config)}
	}
	return all, nil
}
