package e2b_test

import (
	"bytes"
	"net/http"
	"regexp"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/resttest"
)

const overQuota = `{"code":429,"message":"you have reached the maximum number of concurrent E2B sandboxes (20)"}`

func TestFaultsOfTheWayToTheVendor(t *testing.T) {
	t.Parallel()
	sandboxID := regexp.MustCompile(`"sandboxID":\s*"`)
	resttest.Run(t, resttest.Harness{
		New: e2b.New,
		Vendor: func(t testing.TB) (string, func(string) extensions.Config) {
			v := e2btest.Start(t)
			return v.APIURL, func(front string) extensions.Config { return configFor(v, front, v.SandboxURL) }
		},
		Secret:   func(cfg extensions.Config) string { return cfg.Credentials["api_key"].Reveal() },
		IsCreate: func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/sandboxes" },
		IsEnd:    func(r *http.Request) bool { return r.Method == http.MethodDelete },
		IsList:   func(r *http.Request) bool { return r.URL.Path == "/v2/sandboxes" },
		Quota: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(overQuota))
		},
		Page: func(w http.ResponseWriter, next string) {
			w.Header().Set("X-Next-Token", next)
			_, _ = w.Write([]byte("[]"))
		},
		Other: func(body []byte) []byte { return sandboxID.ReplaceAll(bytes.Clone(body), []byte(`"sandboxID":"x`)) },
	})
}
