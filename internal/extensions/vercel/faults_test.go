package vercel_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/resttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

func TestFaultsOfTheWayToTheVendor(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`"name":\s*"`)
	resttest.Run(t, resttest.Harness{
		New: vercel.New,
		Vendor: func(t testing.TB) (string, func(string) extensions.Config) {
			v := verceltest.Start(t)
			return v.APIURL, func(front string) extensions.Config { return configFor(v, front) }
		},
		Secret: func(cfg extensions.Config) string { return cfg.Credentials["token"].Reveal() },
		IsCreate: func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/sandboxes")
		},
		IsEnd: func(r *http.Request) bool {
			return r.Method == http.MethodDelete || strings.HasSuffix(r.URL.Path, "/stop")
		},
		IsList: func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == "/v2/sandboxes" },
		Quota: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(overQuota))
		},
		Page: func(w http.ResponseWriter, next string) {
			_, _ = fmt.Fprintf(w, `{"sandboxes":[],"pagination":{"count":0,"next":%q}}`, next)
		},
		Other: func(body []byte) []byte { return name.ReplaceAll(bytes.Clone(body), []byte(`"name":"x`)) },
	})
}
