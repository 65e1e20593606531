package openshell_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/openshelltest"
)

// gateways are those behind the configurations of checks, by address.
var gateways sync.Map

func gatewayOf(cfg extensions.Config) *openshelltest.Gateway {
	g, _ := gateways.Load(cfg.Values["address"])
	return g.(*openshelltest.Gateway)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at is a configuration for a gateway of its own, which knows its callers by OIDC.
func at(t testing.TB) extensions.Config {
	t.Helper()
	g := openshelltest.Start(t, openshelltest.OIDC)
	gateways.Store(g.URL, g)
	return configFor(g, g.URL)
}

func configFor(g *openshelltest.Gateway, url string) extensions.Config {
	return extensions.Config{Binding: "ext.openshell", Account: "acme/web",
		Values:      map[string]any{"address": url, "oidc_issuer": g.Issuer, "oidc_client_id": g.ClientID, "driver": "docker"},
		Credentials: map[string]extensions.Secret{"oidc_client_secret": extensions.NewSecret(g.Secret)}}
}

func open(t testing.TB, cfg extensions.Config) extensions.Backend {
	t.Helper()
	b, err := openshell.New().Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

func harness() exttest.Harness {
	inject := func(f openshelltest.Fault) func(testing.TB, extensions.Config) {
		return func(_ testing.TB, cfg extensions.Config) { gatewayOf(cfg).Inject(f) }
	}
	return exttest.Harness{
		New:         func(testing.TB) extensions.Extension { return openshell.New() },
		Config:      at,
		Spec:        baked,
		Unreachable: func(_ testing.TB, cfg extensions.Config) { gatewayOf(cfg).Shut() },
		Unauthorized: func(_ testing.TB, cfg extensions.Config) extensions.Config {
			cfg.Credentials = map[string]extensions.Secret{"oidc_client_secret": extensions.NewSecret("wrong")}
			return cfg
		},
		Exhaust: inject(openshelltest.Fault{On: "CreateSandbox", Err: status.Error(codes.ResourceExhausted, "no room")}),
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Resources.GPU = &extensions.GPU{Count: 1}
			return spec
		},
		Falter:     inject(openshelltest.Fault{On: "GetSandbox", Err: status.Error(codes.Unavailable, "gateway")}),
		LoseAnswer: inject(openshelltest.Fault{On: "CreateSandbox", When: openshelltest.After}),
		CutExec: func(t testing.TB, cfg extensions.Config, h extensions.Handle, started <-chan struct{}) {
			go func() {
				<-started
				must(t, gatewayOf(cfg).Sever(h.Ref))
			}()
		},
		Vanish: func(t testing.TB, cfg extensions.Config, h extensions.Handle) { must(t, gatewayOf(cfg).Vanish(h.Ref)) },
		Relabel: func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			must(t, gatewayOf(cfg).Relabel(h.Ref, extensions.LabelID, string(id)))
		},
		Pages: func(_ testing.TB, cfg extensions.Config) int {
			gatewayOf(cfg).SetPageSize(2)
			return 5
		},
		BreakPages: map[string]func(testing.TB, extensions.Config){
			"the first page again and again": func(_ testing.TB, cfg extensions.Config) { gatewayOf(cfg).StickPages() },
			"a gateway for the second page":  inject(openshelltest.Fault{On: "ListSandboxes", Skip: 1, Err: status.Error(codes.Unavailable, "gateway")}),
		},
		Settle: func(testing.TB, extensions.Config) {},
		Residue: func(_ testing.TB, cfg extensions.Config) (left []string) {
			for _, s := range gatewayOf(cfg).Sandboxes() {
				left = append(left, s.GetMetadata().GetName())
			}
			return left
		},
		Outside: outside,
		Serve:   serve,
		Starts:  func(_ testing.TB, cfg extensions.Config) int { return gatewayOf(cfg).Creates() },
		User:    "sandbox",
		Excuse: map[string]string{
			"entrypoint/runs-the-image":            "what an image starts with is not run",
			"errors/each-alternative-opens":        "one credential is enough, so it declares no alternatives",
			"errors/throttled-is-told-not-retried": "the gateway has no limit of calls",
			"egress/deny-denies":                   "walls are the gateway's; its fake has none for the network",
			"egress/allows-only-what-is-named":     "walls are the gateway's; its fake has none for the network",
			"egress/ingress-is-shut":               "sandboxes of the fake have the machine's network",
		},
	}
}

// baked makes an image of what a read-only workspace has: nothing can be put there under the policy.
func baked(t testing.TB, cfg extensions.Config, spec extensions.Spec) extensions.Spec {
	t.Helper()
	if spec.Workspace.Access != extensions.AccessRO || spec.Workspace.Source == nil {
		return spec
	}
	files := map[string]string{}
	r, err := spec.Workspace.Source.Open(t.Context())
	must(t, err)
	defer func() { _ = r.Close() }()
	for archive := tar.NewReader(r); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		text, err := io.ReadAll(archive)
		must(t, err)
		if head.Typeflag == tar.TypeReg {
			files[path.Join("/workspace", head.Name)] = string(text)
		}
	}
	spec.Workspace.Source = nil
	spec.Image = &extensions.Image{Pull: "registry.test/baked:" + strings.TrimPrefix(string(spec.ID), "sbx-")}
	gatewayOf(cfg).SetImage(spec.Image.Pull, files)
	return spec
}

// outside is all that the gateway got but what is a command's input, and the token where it belongs.
func outside(t testing.TB, cfg extensions.Config) []string {
	var out []string
	for _, r := range gatewayOf(cfg).Requests() {
		if in, ok := r.Message.(*gateway.ExecSandboxInput); ok && in.GetStart() == nil {
			continue
		}
		text, err := protojson.Marshal(r.Message)
		must(t, err)
		header := r.Header.Copy()
		delete(header, "authorization")
		more, err := json.Marshal(header)
		must(t, err)
		out = append(out, r.Method+string(text)+string(more))
	}
	return out
}

// serve echoes at a port of this machine, whose network sandboxes of the fake have.
func serve(t testing.TB, _ extensions.Backend, _ extensions.Handle) (service string, port int) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "", l.Addr().(*net.TCPAddr).Port
}

func TestConformance(t *testing.T) {
	t.Parallel()
	exttest.Run(t, harness())
}
