//go:build live

package daytona_test

import (
	"os"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// TestLive holds the vendor itself to the contract, as far as nothing has to break for that. Each check has an
// account label of its own, so it lists its own sandboxes only.
func TestLive(t *testing.T) {
	key := os.Getenv("DAYTONA_API_KEY")
	if key == "" {
		t.Fatal("there is no key for Daytona: set DAYTONA_API_KEY (https://app.daytona.io/dashboard/keys); the run costs some cents")
	}
	h := exttest.Harness{
		New: func(testing.TB) extensions.Extension { return daytona.New() },
		Config: func(t testing.TB) extensions.Config {
			account, err := extensions.NewID(nil)
			must(t, err)
			return extensions.Config{Binding: "ext.daytona", Account: "live/" + string(account), Values: map[string]any{},
				Credentials: map[string]extensions.Secret{"api_key": extensions.NewSecret(key)}}
		},
		Unauthorized: func(_ testing.TB, cfg extensions.Config) extensions.Config {
			cfg.Credentials = map[string]extensions.Secret{"api_key": extensions.NewSecret("dtn_0000000000000000000000000000000000000000")}
			return cfg
		},
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Options = map[string]any{"snapshot": "sandboxer-no-such-snapshot"}
			return spec
		},
		User:     "daytona",
		ShortTTL: time.Minute,
		Serial:   true,
		Excuse:   map[string]string{"errors/each-alternative-opens": "a run has an API key, and no user's token"},
	}
	exttest.Run(t, h)
}
