//go:build live

package e2b_test

import (
	"os"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// TestLive holds the vendor itself to the contract, as far as nothing has to break for that. Each check has an
// account label of its own, so it lists its own sandboxes only.
func TestLive(t *testing.T) {
	key := os.Getenv("E2B_API_KEY")
	if key == "" {
		t.Fatal("there is no key for E2B: set E2B_API_KEY to one of your team's (https://e2b.dev/dashboard?tab=keys); the run costs some cents")
	}
	h := exttest.Harness{
		New: func(testing.TB) extensions.Extension { return e2b.New() },
		Config: func(t testing.TB) extensions.Config {
			account, err := extensions.NewID(nil)
			must(t, err)
			values := map[string]any{}
			if plan := os.Getenv("E2B_PLAN"); plan != "" {
				values["plan"] = plan
			}
			return extensions.Config{Binding: "ext.e2b", Account: "live/" + string(account), Values: values,
				Credentials: map[string]extensions.Secret{"api_key": extensions.NewSecret(key)}}
		},
		Unauthorized: func(_ testing.TB, cfg extensions.Config) extensions.Config {
			cfg.Credentials = map[string]extensions.Secret{"api_key": extensions.NewSecret("e2b_0000000000000000000000000000000000000000")}
			return cfg
		},
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Options = map[string]any{"template": "sandboxer-no-such-template"}
			return spec
		},
		User:     "user",
		ShortTTL: 10 * time.Second,
		Serial:   true,
	}
	exttest.Run(t, h)
}
