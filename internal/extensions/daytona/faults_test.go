package daytona_test

import (
	"bytes"
	"net/http"
	"regexp"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/resttest"
)

func TestFaultsOfTheWayToTheVendor(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`"(id|name)":\s*"`)
	resttest.Run(t, resttest.Harness{
		New: daytona.New,
		Vendor: func(t testing.TB) (string, func(string) extensions.Config) {
			v := daytonatest.Start(t)
			return v.APIURL, func(front string) extensions.Config { return configFor(v, front) }
		},
		Secret:   func(cfg extensions.Config) string { return cfg.Credentials["api_key"].Reveal() },
		IsCreate: func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/sandbox" },
		IsEnd:    func(r *http.Request) bool { return r.Method == http.MethodDelete },
		IsList:   func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == "/sandbox" },
		Quota: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(overQuota))
		},
		Page: func(w http.ResponseWriter, next string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"items":[],"nextCursor":"` + next + `"}`))
		},
		Other: func(body []byte) []byte { return name.ReplaceAll(bytes.Clone(body), []byte(`"$1":"x`)) },
	})
}
