package modal_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
)

// A sandbox with a GPU is V1's for all its life: its handle says so, and all that is done to it reaches V1.
func TestASandboxWithAGPULivesAtV1(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	spec := exttest.Spec(t, cfg, exttest.With(withGPU), exttest.WithEnv("A", "1"))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	there := v.Sandboxes()
	if len(there) != 1 || there[0].Backend != 1 || string(h.Data) != `{"backend":1}` {
		t.Fatalf("%+v, handle %s", there, h.Encode())
	}
	if g := there[0].Asked.GetResources().GetGpuConfig(); g.GetGpuType() != "T4" || g.GetCount() != 1 || there[0].Asked.GetRuntime() != "gvisor" {
		t.Errorf("asked for %s, runtime %q", g, there[0].Asked.GetRuntime())
	}
	all, err := b.Status(t.Context(), nil)
	if err != nil || len(all) != 1 || all[0].Handle.Encode() != h.Encode() {
		t.Errorf("listed: %+v, %v", all, err)
	}
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: `printf %s "$A"; cat`, Stdin: strings.NewReader("in")})
	if err != nil || string(r.Stdout) != "1in" {
		t.Errorf("exec: %q, %v", r.Stdout, err)
	}
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	s, err := b.(extensions.Snapshotter).Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, Account: cfg.Account, CreatedAt: time.Now()})
	if err != nil || s.Handle.Ref == "" {
		t.Errorf("snapshot: %+v, %v", s, err)
	}
	if u, err := b.(extensions.URLGiver).URL(t.Context(), h, 8080); err != nil || !visit(t, cfg, h, 8080, u.Address, u.Header) {
		t.Errorf("url: %+v, %v", u, err)
	}
	again, _, err := b.Provision(t.Context(), spec)
	if err != nil || again.Encode() != h.Encode() {
		t.Errorf("again: %s, %v", again.Encode(), err)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if o, err := b.Status(t.Context(), []extensions.Handle{h}); err != nil || o[0].Phase != extensions.PhaseAbsent {
		t.Errorf("after the end: %+v, %v", o, err)
	}
}

// V1's create forgets the name of what it made when it fails.
func TestV1sCreateIsFoundByItsName(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	v.Inject(grpctest.Fault{On: "SandboxCreate", When: grpctest.After})
	spec := exttest.Spec(t, cfg, exttest.With(withGPU))
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindIndeterminate) || h.ID != spec.ID || h.Ref != "" {
		t.Fatalf("%s, %v", h.Encode(), err)
	}
	found, err := b.Find(t.Context(), spec.ID)
	if err != nil || found.Ref == "" {
		t.Fatalf("found %s, %v", found.Encode(), err)
	}
	_, err = b.Teardown(t.Context(), h) // by the name alone
	must(t, err)
	if left := v.Sandboxes(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestARequestSaysWhatTheProfileDoes(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v, b := vendorOf(cfg), open(t, cfg)
	cpu, memory := extensions.Milli(1500), int64(2048)
	spec := exttest.Spec(t, cfg, exttest.WithTTL(37*time.Minute), exttest.With(func(s *extensions.Spec) {
		s.Resources = extensions.Resources{CPU: &cpu, MemoryMB: &memory}
		s.Network.Egress = []extensions.EgressRule{{CIDR: "192.0.2.0/24"}, {Domain: "*.example.org", Port: 443}}
		s.Env, s.Secrets = map[string]string{"A": "not here"}, map[string]extensions.Secret{"B": extensions.NewSecret("nor here")}
		s.SecretNames = []string{"B"}
	}))
	_, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	got := v.Sandboxes()[0]
	r, n := got.Asked.GetResources(), got.Asked.GetNetworkAccess()
	if r.GetMilliCpu() != 750 || r.GetMilliCpuMax() != 750 || r.GetMemoryMb() != 2048 || r.GetMemoryMbMax() != 2048 {
		t.Errorf("resources %s", r)
	}
	if n.GetNetworkAccessType().String() != "ALLOWLIST" || strings.Join(n.GetAllowedCidrs(), " ") != "192.0.2.0/24" ||
		strings.Join(n.GetAllowedDomains(), " ") != "*.example.org" {
		t.Errorf("network %s", n)
	}
	if secs := got.Asked.GetTimeoutSecs(); secs > 37*60 || secs < 36*60 || got.Asked.GetName() != string(spec.ID) {
		t.Errorf("%d s, name %q", secs, got.Asked.GetName())
	}
	// Without a size there is one all the same, and it is the limit: what would be used beyond it would be billed and not told.
	plain := exttest.Spec(t, cfg)
	_, _, err = b.Provision(t.Context(), plain)
	must(t, err)
	for _, s := range v.Sandboxes() {
		if r := s.Asked.GetResources(); s.Asked.GetName() == string(plain.ID) && (r.GetMilliCpu() != 500 || r.GetMilliCpuMax() != 500 ||
			r.GetMemoryMb() != 1024 || r.GetMemoryMbMax() != 1024) {
			t.Errorf("no size: %s", r)
		}
	}
	for _, text := range outside(t, cfg) {
		if bytes.Contains([]byte(text), []byte("not here")) || bytes.Contains([]byte(text), []byte("nor here")) {
			t.Errorf("a variable is in %s", text)
		}
	}
}
