package daytona_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// place is a vendor of one check's own, behind gates.
type place struct {
	*daytonatest.Vendor
	pages        *vendortest.Pager
	api, toolbox *vendortest.Gate
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
	return behind(t, daytonatest.Start(t))
}

// behind is a configuration for a vendor behind gates.
func behind(t testing.TB, v *daytonatest.Vendor) extensions.Config {
	t.Helper()
	toolbox := vendortest.NewGate(t, v.ToolboxURL)
	v.ToolboxURL = toolbox.URL
	pages := vendortest.NewPager(t, v.APIURL, "/sandbox", "cursor")
	p := place{v, pages, vendortest.NewGate(t, pages.URL), toolbox}
	places.Store(p.api.URL, p)
	return configFor(v, p.api.URL)
}

func configFor(v *daytonatest.Vendor, api string) extensions.Config {
	return extensions.Config{Binding: "ext.daytona", Account: "acme/web", Values: map[string]any{"api_url": api},
		Credentials: map[string]extensions.Secret{"api_key": extensions.NewSecret(v.Key)}}
}

const overQuota = `{"statusCode":400,"message":"Total CPU limit exceeded. Maximum allowed: 10.","error":"Bad Request"}`

func harness() exttest.Harness {
	inject := func(f daytonatest.Fault) func(testing.TB, extensions.Config) {
		return func(_ testing.TB, cfg extensions.Config) { vendorOf(cfg).Inject(f) }
	}
	answers := http.Header{"Content-Type": {"application/json"}}
	return exttest.Harness{
		New:    func(testing.TB) extensions.Extension { return daytona.New() },
		Config: at,
		Unreachable: func(_ testing.TB, cfg extensions.Config) {
			vendorOf(cfg).api.Shut()
			vendorOf(cfg).toolbox.Shut()
		},
		Unauthorized: func(_ testing.TB, cfg extensions.Config) extensions.Config {
			cfg.Credentials = map[string]extensions.Secret{"api_key": extensions.NewSecret("dtn_wrong")}
			return cfg
		},
		Accepted: func(_ testing.TB, cfg extensions.Config, names []string) map[string]extensions.Secret {
			v := vendorOf(cfg)
			if slices.Contains(names, "api_key") {
				return map[string]extensions.Secret{"api_key": extensions.NewSecret(v.Key)}
			}
			return map[string]extensions.Secret{"jwt_token": extensions.NewSecret(v.JWT), "organization_id": extensions.NewSecret(v.Organization)}
		},
		Exhaust: func(_ testing.TB, cfg extensions.Config) {
			vendorOf(cfg).Inject(daytonatest.Fault{On: "POST /sandbox", Status: http.StatusBadRequest, Header: answers, Body: overQuota})
		},
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Options = map[string]any{"snapshot": "no-such-snapshot"}
			return spec
		},
		Throttle: inject(daytonatest.Fault{On: "POST /sandbox", Status: http.StatusTooManyRequests,
			Header: http.Header{"Retry-After": {"1"}, "Content-Type": {"application/json"}}, Body: `{"statusCode":429,"message":"Too Many Requests"}`}),
		Falter:     inject(daytonatest.Fault{On: "GET /sandbox/{sandboxIdOrName}", Status: http.StatusBadGateway, Body: "<html>"}),
		LoseAnswer: inject(daytonatest.Fault{On: "POST /sandbox", When: daytonatest.After}),
		Vanish:     func(_ testing.TB, cfg extensions.Config, h extensions.Handle) { vendorOf(cfg).Vanish(h.Ref) },
		Relabel: func(_ testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			vendorOf(cfg).Relabel(h.Ref, extensions.LabelID, string(id))
		},
		Visit: func(t testing.TB, cfg extensions.Config, _ extensions.Handle, port int, address string, header extensions.Header) bool {
			return vendortest.Visit(t, vendorOf(cfg).ToolboxURL, vendorOf(cfg).Listen, port, address, header)
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
		Residue: func(_ testing.TB, cfg extensions.Config) (left []string) {
			for id := range vendorOf(cfg).Sandboxes() {
				left = append(left, id)
			}
			for _, name := range vendorOf(cfg).Snapshots() {
				left = append(left, "snapshot "+name)
			}
			return left
		},
		RelabelSnapshot: func(_ testing.TB, cfg extensions.Config, h extensions.SnapshotHandle, id string) {
			name := vendorOf(cfg).Snapshots()[h.Ref]
			vendorOf(cfg).RelabelSnapshot(h.Ref, id+name[strings.LastIndex(name, "-sbx-"):])
		},
		Desktop: func(_ testing.TB, cfg extensions.Config, h extensions.Handle) bool {
			return vendorOf(cfg).Desktop(h.Ref)
		},
		Outside: func(t testing.TB, cfg extensions.Config) []string {
			b, err := json.Marshal(vendorOf(cfg).Sandboxes())
			must(t, err)
			return append(vendorOf(cfg).Commands(), string(b))
		},
		Starts:   func(_ testing.TB, cfg extensions.Config) int { return vendorOf(cfg).Creates() },
		User:     "daytona",
		ShortTTL: time.Minute,
		Excuse: map[string]string{
			"entrypoint/runs-the-image":        "what an image starts with is not run",
			"exec/cut-off-may-have-run":        "a command's output comes in calls of its own, so that a broken connection loses nothing",
			"egress/deny-denies":               "walls are the vendor's; its fake has none",
			"egress/allows-only-what-is-named": "walls are the vendor's; its fake has none",
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	exttest.Run(t, harness())
}

// Virtual machines have memory in their snapshots, forks, and no size of their own.
func TestConformanceOfVirtualMachines(t *testing.T) {
	exttest.Alone(t)
	t.Parallel()
	h := harness()
	h.Spec = nil
	h.Config = func(t testing.TB) extensions.Config {
		cfg := at(t)
		cfg.Values["class"], cfg.Values["snapshot"] = "linux-vm", daytonatest.VMSnapshot
		return cfg
	}
	exttest.Run(t, h)
}

// An installation of the user's own ends nothing at a deadline.
func TestConformanceOfAnInstallation(t *testing.T) {
	exttest.Alone(t)
	t.Parallel()
	h := harness()
	h.Config = func(t testing.TB) extensions.Config {
		cfg := behind(t, daytonatest.StartSelfHosted(t))
		cfg.Binding, cfg.Values["edition"] = "ext.daytona-self", "self-hosted"
		return cfg
	}
	exttest.Run(t, h)
}
