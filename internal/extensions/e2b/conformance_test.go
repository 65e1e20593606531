package e2b_test

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// place is a vendor of one check's own, behind gates.
type place struct {
	*e2btest.Vendor
	pages        *vendortest.Pager
	api, sandbox *vendortest.Gate
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
	v := e2btest.Start(t)
	pages := vendortest.NewPager(t, v.APIURL, "/v2/sandboxes", "nextToken")
	p := place{v, pages, vendortest.NewGate(t, pages.URL), vendortest.NewGate(t, v.SandboxURL)}
	places.Store(p.api.URL, p)
	return configFor(v, p.api.URL, p.sandbox.URL)
}

func configFor(v *e2btest.Vendor, api, sandbox string) extensions.Config {
	return extensions.Config{Binding: "ext.e2b", Account: "acme/web",
		Values:      map[string]any{"api_url": api, "sandbox_url": sandbox, "plan": "pro"},
		Credentials: map[string]extensions.Secret{"api_key": extensions.NewSecret(v.Key)}}
}

func harness() exttest.Harness {
	inject := func(f e2btest.Fault) func(testing.TB, extensions.Config) {
		return func(_ testing.TB, cfg extensions.Config) { vendorOf(cfg).Inject(f) }
	}
	return exttest.Harness{
		New:    func(testing.TB) extensions.Extension { return e2b.New() },
		Config: at,
		Unreachable: func(_ testing.TB, cfg extensions.Config) {
			vendorOf(cfg).api.Shut()
			vendorOf(cfg).sandbox.Shut()
		},
		Unauthorized: func(_ testing.TB, cfg extensions.Config) extensions.Config {
			cfg.Credentials = map[string]extensions.Secret{"api_key": extensions.NewSecret("e2b_wrong")}
			return cfg
		},
		Exhaust: inject(e2btest.Fault{On: "POST /sandboxes", Status: http.StatusTooManyRequests, Body: overQuota}),
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Options = map[string]any{"template": "no-such-template"}
			return spec
		},
		Throttle: inject(e2btest.Fault{On: "POST /sandboxes", Status: http.StatusTooManyRequests,
			Header: http.Header{"Retry-After": {"1"}}, Body: `{"code":429,"message":"Rate limit exceeded"}`}),
		Falter:     inject(e2btest.Fault{On: "GET /sandboxes/{sandboxID}", Status: http.StatusBadGateway, Body: "<html>"}),
		LoseAnswer: inject(e2btest.Fault{On: "POST /sandboxes", When: e2btest.After}),
		CutExec: func(t testing.TB, cfg extensions.Config, h extensions.Handle, started <-chan struct{}) {
			go func() {
				<-started
				must(t, vendorOf(cfg).Sever(h.Ref))
			}()
		},
		Vanish: func(t testing.TB, cfg extensions.Config, h extensions.Handle) { must(t, vendorOf(cfg).Vanish(h.Ref)) },
		Relabel: func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			must(t, vendorOf(cfg).Relabel(h.Ref, extensions.LabelID, string(id)))
		},
		Visit: func(t testing.TB, cfg extensions.Config, _ extensions.Handle, port int, address string, header extensions.Header) bool {
			return vendortest.Visit(t, vendorOf(cfg).SandboxURL, vendorOf(cfg).Listen, port, address, header)
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
				out = append(out, s.ID)
			}
			for _, s := range vendorOf(cfg).Snapshots() {
				out = append(out, s.ID)
			}
			return out
		},
		Outside: func(t testing.TB, cfg extensions.Config) []string {
			var out []string
			for _, s := range vendorOf(cfg).Sandboxes() {
				s.Root = ""
				b, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, string(b))
			}
			return out
		},
		Starts: func(_ testing.TB, cfg extensions.Config) int { return vendorOf(cfg).Creates() },
		User:   "user",
		Excuse: map[string]string{
			"entrypoint/runs-the-image":          "what a template starts with runs in every sandbox, and its end ends none",
			"errors/each-alternative-opens":      "one key is enough, so it declares no alternatives",
			"snapshot/delete-relabelled-refused": "a snapshot carries its id in its name, which is its address: under another name it is gone",
			"egress/deny-denies":                 "walls are the vendor's; its fake has none",
			"egress/allows-only-what-is-named":   "walls are the vendor's; its fake has none",
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	exttest.Run(t, harness())
}

// A look-up that misses what is new proves nothing, and the first deadline ends it if nobody comes back.
func TestALateListingIsNoProof(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	v.SetListDelay(20 * time.Second)
	v.Inject(e2btest.Fault{On: "POST /sandboxes", When: e2btest.After})
	b, err := e2b.New().Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	find := b.Find
	spec := exttest.Spec(t, cfg, exttest.WithTTL(3*time.Minute))
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindIndeterminate) || h.ID != spec.ID || h.Ref != "" {
		t.Fatalf("%s, %v", h.Encode(), err)
	}
	if _, err := find(t.Context(), spec.ID); !extensions.IsKind(err, extensions.KindIndeterminate) {
		t.Errorf("before it is listed: %v", err)
	}
	v.Clock().Advance(21 * time.Second)
	if found, err := find(t.Context(), spec.ID); err != nil || found.Ref == "" {
		t.Errorf("when it is listed: %s, %v", found.Encode(), err)
	}
	v.Clock().Advance(3 * time.Minute)
	if left := v.Sandboxes(); len(left) > 0 {
		t.Errorf("after its first deadline: %+v", left)
	}
}

func TestASnapshotInUseIsKept(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	b, err := e2b.New().Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	p := b.(extensions.Snapshotter)
	ready := func(opts ...exttest.Option) extensions.Handle {
		spec := exttest.Spec(t, cfg, opts...)
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		_, err = b.WaitReady(t.Context(), spec, h)
		must(t, err)
		return h
	}
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	s, err := p.Snapshot(t.Context(), ready(), extensions.SnapshotSpec{ID: id, Account: cfg.Account})
	must(t, err)
	from := ready(exttest.With(func(x *extensions.Spec) { x.FromSnapshot = &extensions.SnapshotRef{ID: id, Handle: s.Handle} }))
	if err := p.DeleteSnapshot(t.Context(), s.Handle); !extensions.IsKind(err, extensions.KindConflict) || extensions.RemedyOf(err) == "" {
		t.Errorf("delete while a sandbox uses it: %v", err)
	}
	_, err = b.Teardown(t.Context(), from)
	must(t, err)
	must(t, p.DeleteSnapshot(t.Context(), s.Handle))
}
