package openshell_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/openshelltest"
)

// Each refusal of a create says what the engine may do next, and after each the same create makes one sandbox.
func TestWhatACreateHears(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g, b := gatewayOf(cfg), open(t, cfg)
	code := func(c codes.Code) error { return status.Error(c, "said "+g.Secret) }
	for name, c := range map[string]struct {
		fault grpctest.Fault
		kind  extensions.Kind
		left  bool // a handle remains
	}{
		"a broken connection before":    {grpctest.Fault{}, extensions.KindIndeterminate, true},
		"a lost answer":                 {grpctest.Fault{When: grpctest.After}, extensions.KindIndeterminate, true},
		"unavailable before":            {grpctest.Fault{Err: code(codes.Unavailable)}, extensions.KindIndeterminate, true},
		"unavailable after":             {grpctest.Fault{Err: code(codes.Unavailable), When: grpctest.After}, extensions.KindIndeterminate, true},
		"internal after":                {grpctest.Fault{Err: code(codes.Internal), When: grpctest.After}, extensions.KindIndeterminate, true},
		"exhausted":                     {grpctest.Fault{Err: code(codes.ResourceExhausted)}, extensions.KindExhausted, false},
		"exhausted, and it exists":      {grpctest.Fault{Err: code(codes.ResourceExhausted), When: grpctest.After}, extensions.KindIndeterminate, true},
		"not allowed":                   {grpctest.Fault{Err: code(codes.PermissionDenied)}, extensions.KindUnauthorized, false},
		"the driver cannot":             {grpctest.Fault{Err: code(codes.FailedPrecondition)}, extensions.KindUnsupported, false},
		"no such workspace":             {grpctest.Fault{Err: code(codes.NotFound)}, extensions.KindInvalid, false},
		"invalid":                       {grpctest.Fault{Err: code(codes.InvalidArgument)}, extensions.KindInvalid, false},
		"invalid, and it exists":        {grpctest.Fault{Err: code(codes.InvalidArgument), When: grpctest.After}, extensions.KindIndeterminate, true},
		"about something else":          {grpctest.Fault{When: grpctest.Never, Change: elsewhere}, extensions.KindIndeterminate, true},
		"a storm, and nothing is known": {grpctest.Fault{Err: code(codes.Aborted)}, extensions.KindIndeterminate, true},
	} {
		c.fault.On = "CreateSandbox"
		g.Inject(c.fault)
		spec := exttest.Spec(t, cfg)
		h, _, err := b.Provision(t.Context(), spec)
		if !extensions.IsKind(err, c.kind) || (h.ID == spec.ID) != c.left || err != nil && strings.Contains(err.Error(), g.Secret) {
			t.Errorf("%s: handle %q, %v", name, h.Encode(), err)
		}
		h, _, err = b.Provision(t.Context(), spec)
		if err != nil || h.Ref == "" || len(g.Sandboxes()) != 1 {
			t.Errorf("%s, and again: handle %q, %v, %d sandboxes", name, h.Encode(), err, len(g.Sandboxes()))
		}
		_, err = b.Teardown(t.Context(), h)
		must(t, err)
	}
}

// What takes no room cannot want for it: a gateway that refuses it has no time now.
func TestAGatewayThatLimitsCallsIsNotFull(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g, b := gatewayOf(cfg), open(t, cfg)
	spec := exttest.Spec(t, cfg)
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	for method, do := range map[string]func() error{
		"GetSandbox":    func() error { _, err := b.Find(t.Context(), spec.ID); return err },
		"ListSandboxes": func() error { _, err := b.Status(t.Context(), nil); return err },
		"DeleteSandbox": func() error { _, err := b.Teardown(t.Context(), h); return err },
	} {
		g.Inject(grpctest.Fault{On: method, Err: status.Error(codes.ResourceExhausted, "too many requests")})
		if err := do(); !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v", method, err)
		}
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
}

func elsewhere(answer proto.Message) {
	answer.(*gateway.SandboxResponse).Sandbox.Metadata.Id = "../../x"
}

// A name is given again once its sandbox has gone. The gateway's own id says that it is another one, and that one stays.
func TestANameThatAnotherSandboxHasIsNotDeleted(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g, b := gatewayOf(cfg), open(t, cfg)
	spec := exttest.Spec(t, cfg)
	first, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	must(t, g.Vanish(first.Ref))
	second, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if second.Ref == first.Ref {
		t.Fatal("it is the same object, so nothing is shown")
	}
	r, err := b.Teardown(t.Context(), first)
	if err != nil || !r.AlreadyGone || len(g.Sandboxes()) != 1 {
		t.Errorf("%+v, %v, %d sandboxes", r, err, len(g.Sandboxes()))
	}
	if o, err := b.Status(t.Context(), []extensions.Handle{first, second}); err != nil || o[0].Phase != extensions.PhaseAbsent ||
		o[1].Phase == extensions.PhaseAbsent {
		t.Errorf("%+v, %v", o, err)
	}
	// One of another account has the name: it is not touched, and nobody says that ours is gone.
	must(t, g.Relabel(second.Ref, extensions.LabelAccount, "somebody"))
	if _, err := b.Teardown(t.Context(), second); !extensions.IsKind(err, extensions.KindConflict) || len(g.Sandboxes()) != 1 {
		t.Errorf("%v, %d sandboxes", err, len(g.Sandboxes()))
	}
	if _, err := b.Find(t.Context(), spec.ID); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("find: %v", err)
	}
}

// What is added or removed between two pages is noticed, and half a list is none.
func TestAListThatChangedIsNoList(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g, b := gatewayOf(cfg), open(t, cfg)
	g.SetPageSize(2)
	for range 4 {
		_, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
		must(t, err)
	}
	gone := false
	g.Inject(grpctest.Fault{On: "ListSandboxes", When: grpctest.Never, Change: func(answer proto.Message) {
		gone = g.Vanish(answer.(*gateway.ListSandboxesResponse).GetSandboxes()[0].GetMetadata().GetId()) == nil
	}})
	if all, err := b.Status(t.Context(), nil); !extensions.IsKind(err, extensions.KindUnavailable) || !gone {
		t.Errorf("%d, %v (removed: %t)", len(all), err, gone)
	}
	if all, err := b.Status(t.Context(), nil); err != nil || len(all) != 3 {
		t.Errorf("%d, %v", len(all), err)
	}
}

// Ten creates at once keep the binding's pace: those that have no time to wait for their turn leave nothing.
func TestTenCreatesAtOnceKeepTheBindingsPace(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	cfg.Values["creates_per_minute"] = 4
	g, b := gatewayOf(cfg), open(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var all sync.WaitGroup
	var made atomic.Int32
	for range 10 {
		spec := exttest.Spec(t, cfg)
		all.Go(func() {
			h, _, err := b.Provision(ctx, spec)
			switch {
			case err == nil:
				made.Add(1)
			case !h.IsZero():
				t.Errorf("%s, %v", h.Encode(), err)
			}
		})
	}
	all.Wait()
	if made.Load() != 4 || g.Creates() != 4 {
		t.Errorf("%d made, %d asked for", made.Load(), g.Creates())
	}
}

func TestPhasesOfTheGateway(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g, b := gatewayOf(cfg), open(t, cfg)
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
	must(t, err)
	for phase, want := range map[gateway.SandboxPhase]extensions.Phase{
		gateway.SandboxPhase_SANDBOX_PHASE_STARTING: extensions.PhaseProvisioning,
		gateway.SandboxPhase_SANDBOX_PHASE_READY:    extensions.PhaseReady,
		gateway.SandboxPhase_SANDBOX_PHASE_STOPPING: extensions.PhasePaused, gateway.SandboxPhase_SANDBOX_PHASE_STOPPED: extensions.PhasePaused,
		gateway.SandboxPhase_SANDBOX_PHASE_ERROR: extensions.PhaseFailed, gateway.SandboxPhase_SANDBOX_PHASE_UNKNOWN: extensions.PhaseUnreachable,
	} {
		must(t, g.Phase(h.Ref, phase))
		o, err := b.Status(t.Context(), []extensions.Handle{h})
		if must(t, err); o[0].Phase != want || (o[0].Err != nil) != (want == extensions.PhaseUnreachable) {
			t.Errorf("%s: %+v", phase, o[0])
		}
	}
	if _, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"true"}}); err == nil {
		must(t, g.Phase(h.Ref, gateway.SandboxPhase_SANDBOX_PHASE_STOPPED))
		_, err = b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"true"}})
		if !extensions.IsKind(err, extensions.KindConflict) {
			t.Errorf("a command in a stopped one: %v", err)
		}
	}
}

// Callers are known by a certificate, or not at all on this machine; a gateway is known by its own.
func TestCertificatesLetIn(t *testing.T) {
	t.Parallel()
	tls, plain := openshelltest.Start(t, openshelltest.MutualTLS), openshelltest.Start(t, openshelltest.Plain)
	values := func(address, folder string) extensions.Config {
		return extensions.Config{Account: "acme/web", Values: map[string]any{"address": address, "tls_folder": folder}}
	}
	for _, cfg := range []extensions.Config{values(tls.URL, tls.Folder), {Account: "acme/web", Values: map[string]any{"address": plain.URL}}} {
		b := open(t, cfg)
		spec := exttest.Spec(t, cfg)
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		_, err = b.WaitReady(t.Context(), spec, h)
		must(t, err)
		_, err = b.Teardown(t.Context(), h)
		must(t, err)
	}
	stranger := t.TempDir() // it trusts the gateway, and has no certificate
	ca, err := os.ReadFile(filepath.Join(tls.Folder, "ca.crt"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(stranger, "ca.crt"), ca, 0o600))
	if _, err := openshell.New().Open(t.Context(), values(tls.URL, stranger)); !extensions.IsKind(err, extensions.KindUnauthorized) {
		t.Errorf("without a certificate: %v", err)
	}
	other := openshelltest.Start(t, openshelltest.MutualTLS)
	cfg := values(tls.URL, other.Folder) // another authority
	if _, _, err := open(t, cfg).Provision(t.Context(), exttest.Spec(t, cfg)); !extensions.IsKind(err, extensions.KindUnreachable) || len(tls.Sandboxes()) != 0 {
		t.Errorf("with another authority's certificate: %v", err)
	}
}

// An issuer that refuses, fails, lies or is gone: each says what to do, and none sees a create.
func TestWhatAnIssuerCanDo(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g := gatewayOf(cfg)
	answer := func(code int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if code == http.StatusFound {
				http.Redirect(w, r, g.Issuer+"/.well-known/openid-configuration", code)
				return
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		issuer string
		kind   extensions.Kind
	}{
		"fails":               {answer(http.StatusBadGateway, ""), extensions.KindUnavailable},
		"is none":             {answer(http.StatusNotFound, ""), extensions.KindUnauthorized},
		"redirects":           {answer(http.StatusFound, ""), extensions.KindUnauthorized},
		"is another":          {answer(http.StatusOK, `{"issuer":"https://other.example","token_endpoint":"https://other.example/token"}`), extensions.KindInvalid},
		"talks nonsense":      {answer(http.StatusOK, `<html>`), extensions.KindUnreachable},
		"does not answer":     {gone.URL, extensions.KindUnreachable},
		"has another address": {answer(http.StatusOK, `{"issuer":"x","token_endpoint":"http://192.0.2.1/token"}`), extensions.KindInvalid},
	} {
		changed := configFor(g, g.URL)
		changed.Values["oidc_issuer"] = c.issuer
		_, _, err := open(t, changed).Provision(t.Context(), exttest.Spec(t, changed))
		if !extensions.IsKind(err, c.kind) || strings.Contains(err.Error(), g.Secret) || extensions.RemedyOf(err) == "" {
			t.Errorf("an issuer that %s: %v", name, err)
		}
	}
	if n := g.Creates(); n != 0 {
		t.Errorf("%d sandboxes", n)
	}
}
