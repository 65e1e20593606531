package modal_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal/modaltest"
)

// vendors are those behind the configurations of checks, by address.
var vendors sync.Map

func vendorOf(cfg extensions.Config) *modaltest.Vendor {
	v, _ := vendors.Load(cfg.Values["server_url"])
	return v.(*modaltest.Vendor)
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
	v := modaltest.Start(t)
	vendors.Store(v.URL, v)
	return configFor(v, v.URL)
}

func configFor(v *modaltest.Vendor, url string) extensions.Config {
	return extensions.Config{Binding: "ext.modal", Account: "acme/web", Values: map[string]any{"server_url": url},
		Credentials: map[string]extensions.Secret{"token_id": extensions.NewSecret(v.TokenID), "token_secret": extensions.NewSecret(v.TokenSecret)}}
}

func open(t testing.TB, cfg extensions.Config) extensions.Backend {
	t.Helper()
	b, err := modal.New().Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

// withGPU makes a spec one of V1's.
func withGPU(s *extensions.Spec) { s.Resources.GPU = &extensions.GPU{Model: "T4", Count: 1} }

func harness(spec func(testing.TB, extensions.Config, extensions.Spec) extensions.Spec, create string) exttest.Harness {
	inject := func(f grpctest.Fault) func(testing.TB, extensions.Config) {
		return func(_ testing.TB, cfg extensions.Config) { vendorOf(cfg).Inject(f) }
	}
	return exttest.Harness{
		New:         func(testing.TB) extensions.Extension { return modal.New() },
		Config:      at,
		Spec:        spec,
		Unreachable: func(_ testing.TB, cfg extensions.Config) { vendorOf(cfg).Shut() },
		Unauthorized: func(_ testing.TB, cfg extensions.Config) extensions.Config {
			cfg.Credentials = map[string]extensions.Secret{"token_id": extensions.NewSecret("ak-wrong"), "token_secret": extensions.NewSecret("as-wrong")}
			return cfg
		},
		Exhaust: inject(grpctest.Fault{On: create, Err: status.Error(codes.ResourceExhausted, "Workspace limit reached")}),
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Image = &extensions.Image{Pull: modaltest.NoImage}
			return spec
		},
		Throttle:   inject(grpctest.Fault{On: create, Err: modaltest.Throttled(1)}),
		Falter:     inject(grpctest.Fault{On: "", Err: status.Error(codes.Unavailable, "gateway")}),
		LoseAnswer: inject(grpctest.Fault{On: create, When: grpctest.After}),
		CutExec: func(t testing.TB, cfg extensions.Config, h extensions.Handle, started <-chan struct{}) {
			go func() {
				<-started
				must(t, vendorOf(cfg).Sever(h.Ref))
			}()
		},
		Vanish: func(t testing.TB, cfg extensions.Config, h extensions.Handle) { must(t, vendorOf(cfg).Vanish(h.Ref)) },
		Relabel: func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			must(t, vendorOf(cfg).Relabel(h.Ref, extensions.LabelID, labels.Value(string(id))))
		},
		Visit:   visit,
		Advance: func(_ testing.TB, cfg extensions.Config, d time.Duration) { vendorOf(cfg).Clock().Advance(d) },
		Pages: func(_ testing.TB, cfg extensions.Config) int {
			vendorOf(cfg).SetPageSize(2)
			return 5
		},
		BreakPages: map[string]func(testing.TB, extensions.Config){
			"a page again and again":        func(_ testing.TB, cfg extensions.Config) { vendorOf(cfg).Inject(modaltest.SamePage) },
			"a gateway for the second page": inject(grpctest.Fault{On: "SandboxListV2", Skip: 1, Err: status.Error(codes.Unavailable, "gateway")}),
		},
		Settle: func(testing.TB, extensions.Config) {},
		Residue: func(_ testing.TB, cfg extensions.Config) []string {
			var out []string
			for _, s := range vendorOf(cfg).Sandboxes() {
				out = append(out, s.ID)
			}
			return append(out, vendorOf(cfg).Snapshots()...)
		},
		Outside: outside,
		Starts:  func(_ testing.TB, cfg extensions.Config) int { return vendorOf(cfg).Creates() },
		Excuse: map[string]string{
			"entrypoint/runs-the-image":          "an image's own entrypoint is taken from it",
			"exec/user":                          "the vendor gives no other user",
			"errors/each-alternative-opens":      "one token is enough, so it declares no alternatives",
			"snapshot/delete-relabelled-refused": "a snapshot carries its id in its name, which cannot change",
			"egress/deny-denies":                 "walls are the vendor's; its fake has none",
			"egress/allows-only-what-is-named":   "walls are the vendor's; its fake has none",
		},
	}
}

// outside is all that the vendor got but for what is meant for a command alone, and the account's keys where they
// belong.
func outside(t testing.TB, cfg extensions.Config) []string {
	var out []string
	for _, r := range vendorOf(cfg).Requests() {
		if r.Method == "TaskExecStdinWrite" {
			continue
		}
		text, err := protojson.Marshal(r.Message)
		must(t, err)
		header := r.Header.Copy()
		delete(header, "x-modal-token-id")
		delete(header, "x-modal-token-secret")
		more, err := json.Marshal(header)
		must(t, err)
		out = append(out, r.Method+string(text)+string(more))
	}
	return out
}

// visit asks for a port inside as anybody on the network would. A server of the test's own listens where the port would
// be: sandboxes of the fake have the machine's network.
func visit(t testing.TB, cfg extensions.Config, _ extensions.Handle, port int, address string, header extensions.Header) bool {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from inside") }))
	defer inside.Close()
	vendorOf(cfg).Listen(port, inside.Listener.Addr().String())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	must(t, err)
	if header.Name != "" {
		req.Header.Set(header.Name, header.Value.Reveal())
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	http.DefaultClient.CloseIdleConnections()
	return string(body) == "from inside"
}

func TestConformance(t *testing.T) {
	t.Parallel()
	exttest.Run(t, harness(nil, "SandboxCreateV2"))
}
