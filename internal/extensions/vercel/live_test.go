//go:build live

package vercel_test

import (
	"cmp"
	"os"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel"
)

// TestLive holds the vendor itself to the contract, as far as nothing has to break for that. Each check has an
// account label of its own, so it lists its own sandboxes only.
func TestLive(t *testing.T) {
	given := secrets()
	for name, variable := range map[string]string{"oidc_token": "VERCEL_OIDC_TOKEN", "token": "VERCEL_TOKEN", "team_id": "VERCEL_TEAM_ID",
		"project_id": "VERCEL_PROJECT_ID"} {
		if text := os.Getenv(variable); text != "" {
			given[name] = extensions.NewSecret(text)
		}
	}
	if len(given) == 0 {
		t.Fatal("there is no credential for Vercel: set VERCEL_OIDC_TOKEN, or VERCEL_TOKEN with VERCEL_TEAM_ID and VERCEL_PROJECT_ID; " +
			"the run costs some cents")
	}
	exttest.Run(t, exttest.Harness{
		New: func(testing.TB) extensions.Extension { return vercel.New() },
		Config: func(t testing.TB) extensions.Config {
			account, err := extensions.NewID(nil)
			must(t, err)
			return extensions.Config{Binding: "ext.vercel", Account: "live/" + string(account), Credentials: given,
				Values: map[string]any{"plan": cmp.Or(os.Getenv("VERCEL_PLAN"), "hobby")}}
		},
		Unauthorized: func(_ testing.TB, cfg extensions.Config) extensions.Config {
			cfg.Credentials = secrets("token", "vcp_0000000000000000000000000000000000000000", "team_id", "team_none", "project_id", "prj_none")
			return cfg
		},
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Options = map[string]any{"image": "sandboxer-no-such-image"}
			return spec
		},
		User:     "vercel-sandbox",
		ShortTTL: 10 * time.Second,
		Serial:   true,
	})
}
