package openshell_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/openshelltest"
)

// What a profile says is the policy that the gateway gets, and nothing else of it is left to defaults.
func TestAProfileBecomesAPolicy(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g, b := gatewayOf(cfg), open(t, cfg)
	cpu, memory := extensions.Milli(1500), int64(2048)
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) {
		s.Isolation = extensions.IsolationPolicy
		s.Network.Egress = []extensions.EgressRule{{Domain: "*.example.org", Port: 443}, {CIDR: "192.0.2.0/24", Port: 22}}
		s.Options = map[string]any{"user": "1500", "binaries": []any{"/usr/bin/git", "/usr/bin/curl"}, "read_only": []any{"/usr", "/bin", "/proc"}}
		s.Resources = extensions.Resources{CPU: &cpu, MemoryMB: &memory}
		s.Env, s.SecretNames, s.Secrets = map[string]string{"A": "not here"}, []string{"B"}, map[string]extensions.Secret{"B": extensions.NewSecret("nor here")}
	}))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	got := g.Sandboxes()[0]
	p := got.GetSpec().GetPolicy()
	if f := p.GetFilesystem(); strings.Join(f.GetReadOnly(), " ") != "/bin /proc /usr" || strings.Join(f.GetReadWrite(), " ") != "/sandbox /dev/null /tmp" ||
		f.GetIncludeWorkdir() || p.GetLandlock().GetCompatibility() != "hard_requirement" {
		t.Errorf("files %s, landlock %s", f, p.GetLandlock())
	}
	if u := p.GetProcess(); u.GetRunAsUser() != "1500" || u.GetRunAsGroup() != "1500" {
		t.Errorf("process %s", u)
	}
	rule := p.GetNetworkPolicies()["sandboxer"]
	if e := rule.GetEndpoints(); len(e) != 2 || e[0].GetHost() != "**.example.org" || !slices.Equal(e[0].GetPorts(), []uint32{443}) ||
		e[1].GetHost() != "" || !slices.Equal(e[1].GetAllowedIps(), []string{"192.0.2.0/24"}) || !slices.Equal(e[1].GetPorts(), []uint32{22}) ||
		e[0].GetEnforcement() != "enforce" || e[1].GetEnforcement() != "enforce" || len(p.GetNetworkPolicies()) != 1 {
		t.Errorf("network %s", p.GetNetworkPolicies())
	}
	if x := rule.GetBinaries(); len(x) != 2 || x[0].GetPath() != "/usr/bin/git" || x[1].GetPath() != "/usr/bin/curl" {
		t.Errorf("binaries %s", x)
	}
	limits := got.GetSpec().GetTemplate().GetResources().GetFields()["limits"].GetStructValue().GetFields()
	if limits["cpu"].GetStringValue() != "1500m" || limits["memory"].GetStringValue() != "2048Mi" {
		t.Errorf("limits %v", limits)
	}
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: `printf "%s" "$A$B"`})
	if err != nil || string(r.Stdout) != "not herenor here" {
		t.Errorf("%q, %v", r.Stdout, err)
	}
	for _, text := range outside(t, cfg) {
		if strings.Contains(text, "not here") || strings.Contains(text, "nor here") || strings.Contains(text, g.Secret) {
			t.Errorf("the gateway got %s", text)
		}
	}
}

// Without an allowlist nothing may leave, by a policy that has no rule.
func TestNothingIsAllowedByDefault(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g, b := gatewayOf(cfg), open(t, cfg)
	_, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
	must(t, err)
	if p := g.Sandboxes()[0].GetSpec().GetPolicy(); p == nil || len(p.GetNetworkPolicies()) != 0 {
		t.Errorf("%s", p)
	}
}

// Isolation policy is claimed only for a policy that is loaded, active and the profile's; otherwise the sandbox ends.
func TestOnlyAPolicyInForceIsReady(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g, b := gatewayOf(cfg), open(t, cfg)
	loaded := gateway.PolicyStatus_POLICY_STATUS_LOADED
	changed := func(change func(*gateway.SandboxPolicy)) func(*gateway.SandboxPolicy) openshelltest.Load {
		return func(want *gateway.SandboxPolicy) openshelltest.Load {
			other := proto.CloneOf(want)
			change(other)
			return openshelltest.Load{Status: loaded, Version: 2, Active: 2, Policy: other}
		}
	}
	allowed := []extensions.EgressRule{{Domain: "example.org", Port: 443}}
	for name, c := range map[string]struct {
		load  func(*gateway.SandboxPolicy) openshelltest.Load
		wants string // "" = it is ready
	}{
		"a load that failed": {func(want *gateway.SandboxPolicy) openshelltest.Load {
			return openshelltest.Load{Status: gateway.PolicyStatus_POLICY_STATUS_FAILED, Error: "no such path", Version: 1, Active: 0, Policy: want}
		}, "no such path"},
		"a failed load that keeps the old one": {func(want *gateway.SandboxPolicy) openshelltest.Load {
			return openshelltest.Load{Status: gateway.PolicyStatus_POLICY_STATUS_FAILED, Error: "bad rule", Version: 2, Active: 1, Policy: want}
		}, "bad rule"},
		"the gateway's own policy": {func(want *gateway.SandboxPolicy) openshelltest.Load {
			return openshelltest.Load{Status: loaded, Version: 1, Active: 1, Policy: want, Global: true}
		}, "for all sandboxes"},
		"one more destination": {changed(func(p *gateway.SandboxPolicy) {
			p.NetworkPolicies["more"] = &gateway.NetworkPolicyRule{Endpoints: []*gateway.NetworkEndpoint{{Host: "evil.example", Ports: []uint32{443}}},
				Binaries: []*gateway.NetworkBinary{{Path: "/**"}}}
		}), "evil.example"},
		"only logged":              {changed(func(p *gateway.SandboxPolicy) { p.NetworkPolicies["sandboxer"].Endpoints[0].Enforcement = "audit" }), "audit"},
		"a missing destination":    {changed(func(p *gateway.SandboxPolicy) { p.NetworkPolicies = nil }), "lacks a network rule"},
		"one more folder to write": {changed(func(p *gateway.SandboxPolicy) { p.Filesystem.ReadWrite = append(p.Filesystem.ReadWrite, "/etc") }), "/etc"},
		"the image's own folder":   {changed(func(p *gateway.SandboxPolicy) { p.Filesystem.IncludeWorkdir = true }), "own folder"},
		"one more folder to read":  {changed(func(p *gateway.SandboxPolicy) { p.Filesystem.ReadOnly = append(p.Filesystem.ReadOnly, "/root") }), "/root"},
		"files as far as it goes":  {changed(func(p *gateway.SandboxPolicy) { p.Landlock.Compatibility = "best_effort" }), "where the kernel can"},
		"another user":             {changed(func(p *gateway.SandboxPolicy) { p.Process.RunAsUser = "0" }), "runs as"},
		"what a supervisor adds": {changed(func(p *gateway.SandboxPolicy) {
			p.Filesystem.ReadOnly = append(p.Filesystem.ReadOnly, "/app", "/var/log")
		}), ""},
		"a port in the old way": {changed(func(p *gateway.SandboxPolicy) {
			e := p.NetworkPolicies["sandboxer"].Endpoints[0]
			e.Port, e.Ports = e.Ports[0], nil
		}), ""},
	} {
		g.SetLoad(c.load)
		spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Network.Egress = allowed }))
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		_, err = b.WaitReady(t.Context(), spec, h)
		if c.wants == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			_, err = b.Teardown(t.Context(), h)
			must(t, err)
			continue
		}
		if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), c.wants) {
			t.Errorf("%s: %v", name, err)
		}
		if left := g.Sandboxes(); len(left) > 0 {
			t.Errorf("%s: %d sandboxes are left", name, len(left))
		}
	}
}

// A sandbox runs again only under its policy: where it does not hold anew, it is stopped, and its files are kept.
func TestAResumeWithoutItsPolicyIsStoppedAgain(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	g, b := gatewayOf(cfg), open(t, cfg)
	spec := exttest.Spec(t, cfg)
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	x := b.(extensions.Execer)
	_, err = x.Exec(t.Context(), h, extensions.ExecRequest{Shell: "printf kept >f"})
	must(t, err)
	p := b.(extensions.Pauser)
	o, err := p.Pause(t.Context(), h)
	if must(t, err); o.Phase != extensions.PhasePaused {
		t.Fatalf("%+v", o)
	}
	g.SetLoad(func(want *gateway.SandboxPolicy) openshelltest.Load {
		return openshelltest.Load{Version: 1, Status: gateway.PolicyStatus_POLICY_STATUS_FAILED, Error: "no Landlock", Policy: want}
	})
	if _, err := p.Resume(t.Context(), h, spec.Deadline); !extensions.IsKind(err, extensions.KindUnsupported) ||
		!strings.Contains(err.Error(), "no Landlock") {
		t.Errorf("%v", err)
	}
	if all, err := b.Status(t.Context(), []extensions.Handle{h}); err != nil || all[0].Phase != extensions.PhasePaused {
		t.Fatalf("%+v, %v", all, err)
	}
	g.SetLoad(openshelltest.Loaded)
	_, err = p.Resume(t.Context(), h, spec.Deadline)
	must(t, err)
	r, err := x.Exec(t.Context(), h, extensions.ExecRequest{Shell: "cat f"})
	if err != nil || string(r.Stdout) != "kept" {
		t.Errorf("%q, %v", r.Stdout, err)
	}
}

// What the policy does not list cannot be read, and what it does not list as writable cannot be written: the fake has that in force.
func TestFilesAreHeldToTheProfile(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	b := open(t, cfg)
	gatewayOf(cfg).SetImage("registry.test/tools:1", map[string]string{"/opt/tools/a": "tool", "/srv/secret": "hidden"})
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) {
		s.Image = &extensions.Image{Pull: "registry.test/tools:1"}
		s.Options = map[string]any{"read_only": []any{"/bin", "/etc", "/lib", "/opt/tools", "/proc", "/usr"}}
	}))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	const try = `cat /opt/tools/a; cat /srv/secret || echo " unread"; echo x >/opt/tools/a || echo unwritten; echo y >mine && cat mine`
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: try})
	if err != nil || string(r.Stdout) != "tool unread\nunwritten\ny\n" {
		t.Errorf("%q, %v", r.Stdout, err)
	}
}

// A path that the image lacks keeps the sandbox from starting, and the message has it.
func TestAMissingPathIsTold(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	b := open(t, cfg)
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Options = map[string]any{"read_only": []any{"/bin", "/nowhere"}} }))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if _, err := b.WaitReady(t.Context(), spec, h); !extensions.IsKind(err, extensions.KindFailed) || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("%v", err)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
}

func TestWhatNoPolicyCanSayIsRefusedInThePlan(t *testing.T) {
	t.Parallel()
	cfg := extensions.Config{Account: "acme/web", Values: map[string]any{"address": "http://127.0.0.1:1"}}
	x := openshell.New().(extensions.SpecChecker)
	size := extensions.Milli(1000)
	with := func(key string, value any) func(*extensions.Spec) {
		return func(s *extensions.Spec) { s.Options = map[string]any{key: value} }
	}
	for name, c := range map[string]struct {
		change func(*extensions.Spec)
		kind   extensions.Kind
		field  string
	}{
		"everything allowed":     {func(s *extensions.Spec) { s.Network.Default = "allow" }, extensions.KindUnsupported, "network.default"},
		"every port":             {func(s *extensions.Spec) { s.Network.Egress = []extensions.EgressRule{{Domain: "example.org"}} }, extensions.KindUnsupported, "network.egress"},
		"a size nobody holds":    {func(s *extensions.Spec) { s.Resources.CPU = &size }, extensions.KindUnsupported, "resources.cpu"},
		"a model of GPU":         {func(s *extensions.Spec) { s.Resources.GPU = &extensions.GPU{Model: "H100", Count: 1} }, extensions.KindUnsupported, "resources.gpu.model"},
		"root":                   {with("user", "0"), extensions.KindInvalid, "options.user"},
		"another name":           {with("user", "root"), extensions.KindInvalid, "options.user"},
		"a relative program":     {with("binaries", []any{"git"}), extensions.KindInvalid, "options.binaries"},
		"a readable part of tmp": {with("read_only", []any{"/tmp/x"}), extensions.KindInvalid, "options.read_only"},
		"all of the image":       {with("home", "/"), extensions.KindInvalid, "options.home"},
		"a read-only repository": {func(s *extensions.Spec) { s.Workspace.Access, s.Workspace.Repo = extensions.AccessRO, "." }, extensions.KindUnsupported, "workspace.access"},
		"a read-only home": {func(s *extensions.Spec) {
			s.Workspace.Access, s.Options = extensions.AccessRO, map[string]any{"workdir": "/sandbox/code"}
		}, extensions.KindInvalid, "options.workdir"},
		"secrets as files": {func(s *extensions.Spec) {
			s.SecretsAs, s.Secrets = extensions.SecretsFile, map[string]extensions.Secret{"A": extensions.NewSecret("x")}
		}, extensions.KindUnsupported, "secrets_as"},
		"a region": {func(s *extensions.Spec) { s.Region = "eu" }, extensions.KindUnsupported, "region"},
	} {
		_, err := x.CheckSpec(t.Context(), cfg, exttest.Spec(t, cfg, exttest.With(c.change)))
		if !extensions.IsKind(err, c.kind) || extensions.FieldOf(err) != c.field {
			t.Errorf("%s: %v (field %q)", name, err, extensions.FieldOf(err))
		}
	}
	if _, err := x.CheckSpec(t.Context(), cfg, exttest.Spec(t, cfg)); err != nil {
		t.Error(err)
	}
}
