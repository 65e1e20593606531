package docker

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestPullErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]extensions.Kind{
		`manifest for nginx:nope not found: manifest unknown: manifest unknown`:                           extensions.KindUnsupported,
		`pull access denied for nobody/x, repository does not exist or may require 'docker login'`:        extensions.KindUnsupported,
		`no matching manifest for linux/arm64/v8 in the manifest list entries`:                            extensions.KindUnsupported,
		`Get "https://registry.example/v2/": dial tcp: lookup registry.example on 10.0.0.1: no such host`: extensions.KindUnavailable,
		`Get "https://registry.example/v2/": net/http: TLS handshake timeout`:                             extensions.KindUnavailable,
		`toomanyrequests: You have reached your pull rate limit.`:                                         extensions.KindUnavailable,
		`Head "https://registry.example/v2/x/manifests/1": unauthorized: authentication required`:         extensions.KindUnauthorized,
		`failed to register layer: write /usr/lib/x: no space left on device`:                             extensions.KindExhausted,
		`invalid reference format: repository name must be lowercase`:                                     extensions.KindInvalid,
	} {
		if kind, remedy := judgePull(text); kind != want || remedy == "" {
			t.Errorf("%s: %s %q, want %s", text, kind, remedy, want)
		}
	}
}
