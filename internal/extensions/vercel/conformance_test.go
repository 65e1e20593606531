package vercel_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

// place is a vendor of one check's own, behind a gate.
type place struct {
	*verceltest.Vendor
	pages *vendortest.Pager
	gate  *vendortest.Gate
}

// places are those behind the configurations of checks, by address.
var places sync.Map

func vendorOf(cfg extensions.Config) place {
	v, _ := places.Load(cfg.Values["api_url"])
	return v.(place)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at is a configuration for a vendor of its own.
func at(t testing.TB) extensions.Config {
	t.Helper()
	v := verceltest.Start(t)
	pages := vendortest.NewPager(t, v.APIURL, "/v2/sandboxes", "cursor")
	p := place{v, pages, vendortest.NewGate(t, pages.URL)}
	places.Store(p.gate.URL, p)
	return configFor(v, p.gate.URL)
}

func configFor(v *verceltest.Vendor, address string) extensions.Config {
	return extensions.Config{Binding: "ext.vercel", Account: "acme/web", Values: map[string]any{"api_url": address, "plan": "pro"},
		Credentials: secrets("token", v.Token, "team_id", v.Team, "project_id", v.Project)}
}

func secrets(pairs ...string) map[string]extensions.Secret {
	out := map[string]extensions.Secret{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = extensions.NewSecret(pairs[i+1])
	}
	return out
}

const (
	creates = "POST /v3/sandboxes"
	runs    = "POST /v2/sandboxes/sessions/{sessionId}/cmd"
)

func harness() exttest.Harness {
	inject := func(f verceltest.Fault) func(testing.TB, extensions.Config) {
		return func(_ testing.TB, cfg extensions.Config) { vendorOf(cfg).Inject(f) }
	}
	asJSON := http.Header{"Content-Type": {"application/json"}}
	return exttest.Harness{
		New:         func(testing.TB) extensions.Extension { return vercel.New() },
		Config:      at,
		Unreachable: func(_ testing.TB, cfg extensions.Config) { vendorOf(cfg).gate.Shut() },
		Unauthorized: func(_ testing.TB, cfg extensions.Config) extensions.Config {
			cfg.Credentials = secrets("token", "vcp_wrong", "team_id", vendorOf(cfg).Team, "project_id", vendorOf(cfg).Project)
			return cfg
		},
		Accepted: func(_ testing.TB, cfg extensions.Config, names []string) map[string]extensions.Secret {
			v := vendorOf(cfg)
			if len(names) == 1 {
				return secrets("oidc_token", v.OIDC())
			}
			return secrets("token", v.Token, "team_id", v.Team, "project_id", v.Project)
		},
		Exhaust: inject(verceltest.Fault{On: creates, Status: http.StatusTooManyRequests, Header: asJSON, Body: overQuota}),
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Options = map[string]any{"image": "no-such-image"}
			return spec
		},
		Throttle: inject(verceltest.Fault{On: creates, Status: http.StatusTooManyRequests,
			Header: http.Header{"Retry-After": {"1"}, "Content-Type": {"application/json"}},
			Body:   `{"error":{"code":"rate_limited","message":"Rate limit exceeded"}}`}),
		Falter:     inject(verceltest.Fault{On: "GET /v2/sandboxes/{name}", Status: http.StatusBadGateway, Body: "<html>"}),
		LoseAnswer: inject(verceltest.Fault{On: creates, When: verceltest.After}),
		CutExec: func(_ testing.TB, cfg extensions.Config, _ extensions.Handle, started <-chan struct{}) {
			go func() {
				<-started
				// A single lost answer costs nothing: the command goes on without it. This one ends the look for good.
				vendorOf(cfg).Inject(verceltest.Fault{On: runs, Status: http.StatusForbidden, Header: asJSON,
					Body: `{"error":{"code":"forbidden","message":"Not authorized"}}`})
			}()
		},
		Vanish: func(t testing.TB, cfg extensions.Config, h extensions.Handle) { must(t, vendorOf(cfg).Vanish(h.Ref)) },
		Relabel: func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			must(t, vendorOf(cfg).Relabel(h.Ref, extensions.LabelID, string(id)))
		},
		// A snapshot has no place for an id: its session says whose it is.
		RelabelSnapshot: func(t testing.TB, cfg extensions.Config, h extensions.SnapshotHandle, id string) {
			var own struct{ Session string }
			must(t, json.Unmarshal(h.Data, &own))
			if id != h.ID {
				own.Session = "sbx_another"
			}
			must(t, vendorOf(cfg).Reassign(h.Ref, own.Session))
		},
		Visit: func(t testing.TB, cfg extensions.Config, _ extensions.Handle, port int, address string, header extensions.Header) bool {
			return vendortest.Visit(t, vendorOf(cfg).GatewayURL, vendorOf(cfg).Listen, port, address, header)
		},
		Advance: func(_ testing.TB, cfg extensions.Config, d time.Duration) { vendorOf(cfg).Clock().Advance(d) },
		Pages: func(_ testing.TB, cfg extensions.Config) int {
			vendorOf(cfg).pages.Size.Store(2)
			return 5
		},
		BreakPages: map[string]func(testing.TB, extensions.Config){
			"a page again and again":        func(_ testing.TB, cfg extensions.Config) { vendorOf(cfg).pages.Repeat.Store(true) },
			"a gateway for the second page": func(_ testing.TB, cfg extensions.Config) { vendorOf(cfg).pages.Fail.Store(true) },
		},
		Settle: func(testing.TB, extensions.Config) {},
		Residue: func(_ testing.TB, cfg extensions.Config) []string {
			var out []string
			for _, s := range vendorOf(cfg).Sandboxes() {
				out = append(out, s.Name)
			}
			return out
		},
		Outside: outside,
		Starts:  func(_ testing.TB, cfg extensions.Config) int { return vendorOf(cfg).Creates() },
		User:    "vercel-sandbox",
		Excuse: map[string]string{
			"entrypoint/runs-the-image":        "what an image starts with is not run, and its end ends no sandbox",
			"egress/deny-denies":               "walls are the vendor's; its fake has none",
			"egress/allows-only-what-is-named": "walls are the vendor's; its fake has none",
		},
	}
}

const overQuota = `{"error":{"code":"sandbox_limit_reached","message":"The team has reached its limit of concurrent sandboxes."}}`

// outside is what the vendor keeps of its sandboxes and their commands, and what is left of input in them.
func outside(t testing.TB, cfg extensions.Config) (out []string) {
	for _, s := range vendorOf(cfg).Sandboxes() {
		out = append(out, s.Name, strings.Join(s.Commands, "\n"))
		for key, value := range s.Tags {
			out = append(out, key, value)
		}
		left, err := filepath.Glob(filepath.Join(s.Root, "tmp", ".sandboxer-*", "in"))
		must(t, err)
		for _, at := range left {
			text, _ := os.ReadFile(at)
			out = append(out, string(text))
		}
	}
	return out
}

func TestConformance(t *testing.T) {
	t.Parallel()
	exttest.Run(t, harness())
}
