package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	opsBridge = "id: ops-bridge\naddress: bastion.example\nport: 2222\nuser: ops\nhost_key: \"ssh-ed25519 AAAA\"\nidentity: ops-warden\n"
	opsWarden = "id: ops-warden\ncommand: [warden, ssh]\n"
)

// sample is the catalog of the design's own profile, as it is written there.
func sample(t *testing.T, more map[string]string) *engine.Engine {
	t.Helper()
	text, err := os.ReadFile("testdata/sample/profiles/profile.compose-e2e.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"profiles/sample.yaml": string(text), "tunnels/ops-bridge.yaml": opsBridge,
		"identities/ops-warden.yaml": opsWarden}
	for name, content := range more {
		files[name] = content
	}
	return catalogEngine(t, files)
}

// reached is a host that is dialled as the sample asks for, changed by change.
func reached(t *testing.T, e *engine.Engine, change func(*extensions.SSH)) string {
	t.Helper()
	tunnel, err := e.Tunnel("ops-bridge")
	if err != nil {
		t.Fatal(err)
	}
	identity, err := e.Identity("ops-warden")
	if err != nil {
		t.Fatal(err)
	}
	s := &extensions.SSH{Address: "10.0.0.5", User: "sandbox", HostKey: "ssh-ed25519 AAAA", Identity: &identity,
		Jump: []extensions.SSH{tunnel}}
	change(s)
	return engine.Host{Name: "sandboxer01", SSH: s}.Ref()
}

func TestTheSampleProfileRunsOnHostsThatAreReachedItsWay(t *testing.T) {
	t.Parallel()
	e := sample(t, nil)
	ctx := context.Background()
	for name, c := range map[string]struct {
		change func(*extensions.SSH)
		want   string // of the refusal, "" = it is the place
	}{
		"its way":                   {func(*extensions.SSH) {}, ""},
		"directly":                  {func(s *extensions.SSH) { s.Jump = nil }, "is reached without a jump host"},
		"through another":           {func(s *extensions.SSH) { s.Jump[0].Address = "other.example" }, "is reached through other.example:2222"},
		"through another port":      {func(s *extensions.SSH) { s.Jump[0].Port = 22 }, "through bastion.example:22"},
		"the jump with another key": {func(s *extensions.SSH) { s.Jump[0].Identity = nil }, "asks for the tunnel ops-bridge"},
		"through two":               {func(s *extensions.SSH) { s.Jump = append(s.Jump, s.Jump[0]) }, "then bastion.example:2222"},
		"with a key of its own": {func(s *extensions.SSH) { s.Identity = &extensions.SSHIdentity{PrivateKeyFile: "~/.ssh/id"} },
			"asks for the identity ops-warden"},
		"without an identity": {func(s *extensions.SSH) { s.Identity = nil }, "asks for the identity ops-warden"},
	} {
		p, err := e.Plan(ctx, engine.Request{Profile: "profile.compose-e2e", Hosts: []string{reached(t, e, c.change)}})
		switch text := told(err); {
		case c.want == "" && (err != nil || p.Extension != "ext.compose-ssh" || p.Estimate.TTL != "4h"):
			t.Errorf("%s: %+v, %s", name, p, text)
		case c.want != "" && (!strings.Contains(text, "intent.reachability") || !strings.Contains(text, c.want)):
			t.Errorf("%s: %s", name, text)
		}
	}
}

// An unpinned profile that names a tunnel keeps to hosts behind it: neither
// this machine nor a vendor is reached through anything.
func TestReachabilityKeepsWhatIsNoHostOut(t *testing.T) {
	t.Parallel()
	e := sample(t, map[string]string{"profiles/any.yaml": requiring("any", "reachability: { tunnel: ops-bridge }")})
	if got, first := refusals(t, e, engine.Request{Profile: "profile.any"}); first != "" || got["ext.local"] != "intent.reachability" {
		t.Errorf("first %q, refused %v", first, got)
	}
	got, first := refusals(t, e, engine.Request{Profile: "profile.any",
		Hosts: []string{reached(t, e, func(s *extensions.SSH) { s.Identity = nil })}})
	if first != "ext.compose-ssh" {
		t.Errorf("with any identity: first %q, refused %v", first, got)
	}
}

func TestAnUnknownTunnelOrIdentityIsRefusedWithTheNearest(t *testing.T) {
	t.Parallel()
	e := newBench(t, onFiles(map[string]string{"tunnels/ops-bridge.yaml": opsBridge, "identities/ops-warden.yaml": opsWarden,
		"profiles/a.yaml": requiring("a", "reachability: { tunnel: ops-brigde }"),
		"profiles/b.yaml": requiring("b", "reachability: { identity: ops-wardn }"),
		"profiles/c.yaml": requiring("c", "")})) // one profile's mistake does not stop the others
	problems, err := catalog.ValidatePath(e.catalog, all(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, near := range map[string]string{"a": "ops-bridge", "b": "ops-warden"} {
		_, err := e.Plan(context.Background(), engine.Request{Profile: "profile." + name})
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(extensions.RemedyOf(err), "did you mean "+near) ||
			extensions.FieldOf(err) != "profile" {
			t.Errorf("%s: the plan says %v (%s)", name, err, extensions.RemedyOf(err))
		}
		found := false
		for _, p := range problems {
			found = found || p.File == filepath.Join(e.catalog, "profiles", name+".yaml") && !p.Notice && p.Line == 6 &&
				strings.Contains(p.Msg, `did you mean "`+near)
		}
		if !found {
			t.Errorf("%s: the check says %+v", name, problems)
		}
	}
	if _, err := e.Plan(context.Background(), engine.Request{Profile: "profile.c"}); err != nil {
		t.Errorf("a profile that names none: %s", told(err))
	}
}

// What is kept with every sandbox has a bound, and the plan tells of it.
func TestAHostWhoseRefIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	e := catalogEngine(t, nil)
	h := onSSH(false)
	h.Labels = map[string]string{}
	for len(h.Ref()) <= extensions.MaxHostRef {
		if err := e.CheckHost(h); err != nil {
			t.Fatalf("%d bytes: %v", len(h.Ref()), err)
		}
		h.Labels[fmt.Sprintf("l%d", len(h.Labels))] = strings.Repeat("x", 200)
	}
	if err := e.CheckHost(h); !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "at most 16384") {
		t.Errorf("%d bytes: %v", len(h.Ref()), err)
	}
	if _, err := e.Plan(context.Background(), engine.Request{Profile: "profile.quickstart", Hosts: []string{h.Ref()}}); !extensions.IsKind(err,
		extensions.KindInvalid) {
		t.Errorf("as a request's host: %v", err)
	}
	for _, ref := range []string{`{"name":"here","local":true}`, "host://here?v=1&d=eyJsb2NhbCI6dHJ1ZX0=", " " +
		engine.Host{Name: "here", Local: true}.Ref()} {
		if _, err := e.Plan(context.Background(), engine.Request{Profile: "profile.quickstart", Hosts: []string{ref}}); err == nil {
			t.Errorf("%s is accepted", ref)
		}
	}
}
