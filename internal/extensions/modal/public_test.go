package modal_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
)

// open80 is a configuration whose sandboxes have the port 8080 open to everybody, where something listens.
func open80(t *testing.T, ports ...any) extensions.Config {
	t.Helper()
	cfg := at(t)
	cfg.Values = map[string]any{"server_url": cfg.Values["server_url"], "public_ports": ports}
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "here", r.Header["Authorization"]) }))
	t.Cleanup(here.Close)
	for _, port := range []int{8080, 9090} {
		vendorOf(cfg).Listen(port, strings.TrimPrefix(here.URL, "http://"))
	}
	return cfg
}

// Everybody reaches a port of the binding's list through a tunnel, at either backend, and others only with a token.
func TestAPublicPortIsReachedByEverybody(t *testing.T) {
	t.Parallel()
	allow := exttest.With(func(s *extensions.Spec) { s.Network = extensions.Network{Default: "allow"} })
	for backend, opts := range map[string][]exttest.Option{"V2": {allow}, "V1": {allow, exttest.With(withGPU)}} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			cfg := open80(t, "8080")
			b := open(t, cfg)
			spec := exttest.Spec(t, cfg, opts...)
			h, _, err := b.Provision(t.Context(), spec)
			must(t, err)
			_, err = b.WaitReady(t.Context(), spec, h)
			must(t, err)
			u, err := b.(extensions.URLGiver).URL(t.Context(), h, 8080)
			if must(t, err); !u.Header.Value.IsZero() || !u.ExpiresAt.IsZero() || !strings.HasPrefix(u.Address, "https://") {
				t.Fatalf("%+v", u)
			}
			get := func() int {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.Address, http.NoBody)
				must(t, err)
				r, err := vendorOf(cfg).Everybody().Do(req)
				must(t, err)
				must(t, r.Body.Close())
				return r.StatusCode
			}
			if got := get(); got != http.StatusOK {
				t.Errorf("a stranger is answered %d", got)
			}
			if other, err := b.(extensions.URLGiver).URL(t.Context(), h, 9090); err != nil || other.Header.Value.IsZero() {
				t.Errorf("another port: %+v, %v", other, err)
			}
			_, err = b.Teardown(t.Context(), h)
			if must(t, err); get() == http.StatusOK {
				t.Error("the tunnel outlives its sandbox")
			}
		})
	}
}

// A sandbox that was made before its binding opened the port has no tunnel, so its URL has a token.
func TestAnEarlierSandboxKeepsItsTokens(t *testing.T) {
	t.Parallel()
	cfg := open80(t)
	spec := exttest.Spec(t, cfg)
	before := open(t, cfg)
	h, _, err := before.Provision(t.Context(), spec)
	must(t, err)
	cfg.Values = map[string]any{"server_url": cfg.Values["server_url"], "public_ports": []any{"8080"}}
	if u, err := open(t, cfg).(extensions.URLGiver).URL(t.Context(), h, 8080); err != nil || u.Header.Value.IsZero() {
		t.Errorf("%+v, %v", u, err)
	}
}

// The plan tells that a binding's ports are public, and refuses them where the network is denied altogether.
func TestPublicPortsAreToldInThePlan(t *testing.T) {
	t.Parallel()
	cfg := open80(t, "8080")
	d, err := modal.New().(extensions.Declarer).Declare(cfg.Values)
	if must(t, err); d.Narrowing.Ingress == nil || *d.Narrowing.Ingress != extensions.IngressPublic {
		t.Errorf("ingress: %v", d.Narrowing.Ingress)
	}
	check := modal.New().(extensions.SpecChecker).CheckSpec
	_, err = check(t.Context(), cfg, exttest.Spec(t, cfg))
	if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(extensions.RemedyOf(err), "network.egress") {
		t.Errorf("denied altogether: %v", err)
	}
	listed := exttest.With(func(s *extensions.Spec) {
		s.Network = extensions.Network{Default: "deny", Egress: []extensions.EgressRule{{Domain: "pypi.org", Port: 443}}}
	})
	if _, err = check(t.Context(), cfg, exttest.Spec(t, cfg, listed)); err != nil {
		t.Errorf("with a list: %v", err)
	}
	for _, bad := range []any{"0", "http", "70000", "8080/tcp"} {
		if _, err := check(t.Context(), open80(t, bad), exttest.Spec(t, cfg, listed)); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
