//go:build live

package modal_test

import (
	"os"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
)

// TestLive holds the vendor itself to the contract, as far as nothing has to break for that. Each check has an
// account label of its own, so it lists its own sandboxes only.
func TestLive(t *testing.T) {
	id, secret := os.Getenv("MODAL_TOKEN_ID"), os.Getenv("MODAL_TOKEN_SECRET")
	if id == "" || secret == "" {
		t.Fatal("there is no token for Modal: set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET (https://modal.com/settings/tokens); the run costs some cents")
	}
	h := exttest.Harness{
		New: func(testing.TB) extensions.Extension { return modal.New() },
		Config: func(t testing.TB) extensions.Config {
			account, err := extensions.NewID(nil)
			must(t, err)
			return extensions.Config{Binding: "ext.modal", Account: "live/" + string(account), Values: map[string]any{},
				Credentials: map[string]extensions.Secret{"token_id": extensions.NewSecret(id), "token_secret": extensions.NewSecret(secret)}}
		},
		Unauthorized: func(_ testing.TB, cfg extensions.Config) extensions.Config {
			cfg.Credentials = map[string]extensions.Secret{"token_id": extensions.NewSecret("ak-wrong"), "token_secret": extensions.NewSecret("as-wrong")}
			return cfg
		},
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Image = &extensions.Image{Pull: "registry.invalid/no-such-image:1"}
			return spec
		},
		ShortTTL: time.Minute,
		Serial:   true,
		Excuse:   map[string]string{"errors/each-alternative-opens": "no alternative credentials are declared", "exec/user": "the vendor gives no other user"},
	}
	exttest.Run(t, h)
}
