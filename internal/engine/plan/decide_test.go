package plan_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const mine = `id: profile.mine
version: 1.0.0
ttl: { default: 1h }
`

// described is an extension that only describes itself.
type described extensions.Descriptor

func (d described) Describe() extensions.Descriptor { return extensions.Descriptor(d) }

func (described) Open(context.Context, extensions.Config) (extensions.Backend, error) {
	return nil, extensions.Errorf(extensions.KindUnsupported, "a plan opens nothing")
}

// world is a catalog of two places: hosts over SSH that tell how full they are,
// and a vendor's account.
func world(t *testing.T, profile string) *catalog.Catalog {
	t.Helper()
	able := extensions.Capabilities{
		IsolationLevels: []extensions.Isolation{extensions.IsolationContainer}, Egress: extensions.EgressDomain,
		CIDRPorts: extensions.PortsAny, DomainPorts: extensions.PortsAny,
		PricingModel: extensions.PricingSelfHosted, OS: []string{"linux"}, Arch: []string{"*"},
		Expiry: extensions.ExpiryNative, Regions: []string{"*"}, Limits: slices.Clone(extensions.Limits),
		ReadOnlyWorkspace: true, CapacityQuery: true,
		Provides: extensions.Provides{RuntimeKinds: []string{"native"}}, SecretsAs: slices.Clone(extensions.SecretDeliveries),
	}
	handlers := []extensions.Extension{
		described{Handler: "near", Places: []extensions.Place{extensions.PlaceHost}, Capabilities: able,
			Powers: []extensions.Power{extensions.PowerCapacity},
			Find:   extensions.Find{Strength: extensions.FindStrong}},
		described{Handler: "far", Places: []extensions.Place{extensions.PlaceAccount}, Capabilities: able,
			Find:        extensions.Find{Strength: extensions.FindStrong},
			Credentials: []extensions.CredentialField{{Name: "api_key", Env: "FAR_KEY", Required: true}}},
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"profiles/mine.yaml":   profile,
		"extensions/near.yaml": "id: ext.near\nhandler: near\npriority: 10\n",
		"extensions/far.yaml":  "id: ext.far\nhandler: far\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Load([]string{dir}, handlers, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(t *testing.T, cat *catalog.Catalog, req plan.Request) *plan.Asked {
	t.Helper()
	req.Profile = "profile.mine"
	a, err := plan.Ask(cat.Profiles, req)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func decide(t *testing.T, cat *catalog.Catalog, a *plan.Asked, ev plan.Evidence) (*plan.Decision, plan.Lacks) {
	t.Helper()
	ev.Account, ev.Now = "acme/web", now
	if ev.At == nil {
		ev.At = map[string]plan.Seen{}
	}
	d, lacks, err := plan.Decide(cat, a, ev)
	if err != nil {
		t.Fatal(err)
	}
	return d, lacks
}

func host(name string) extensions.Host {
	return extensions.Host{Name: name, SSH: &extensions.SSH{Address: name + ".example"}}
}

// A create asks one question at a time, of its first choice alone, and each
// answer counts; a plan asks none.
func TestACreateSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	cat := world(t, mine)
	a := ask(t, cat, plan.Request{Hosts: []string{"one", "two"}})
	hosts := []extensions.Host{host("one"), host("two")}
	d, lacks := decide(t, cat, a, plan.Evidence{Hosts: hosts})
	if !lacks.Nothing() || d.Choice.Chosen.ID() != "ext.near@one" {
		t.Fatalf("a plan chose %v and lacks %+v", d.Choice.Chosen, lacks)
	}

	ev := plan.Evidence{Hosts: hosts, Create: true, At: map[string]plan.Seen{}}
	_, lacks = decide(t, cat, a, ev)
	if lacks.Health == nil || lacks.Health.ID() != "ext.near@one" {
		t.Fatalf("lacks %+v", lacks)
	}
	ev.At["ext.near@one"] = plan.Seen{Asked: true, Silence: &plan.Silence{At: now, Err: errors.New("no route")}}
	d, lacks = decide(t, cat, a, ev)
	if d.Choice.Chosen.ID() != "ext.near@two" || lacks.Health != nil || lacks.Room == nil || lacks.Room.ID() != "ext.near@two" {
		t.Fatalf("after a silence it chose %s and lacks %+v", d.Choice.Chosen.ID(), lacks)
	}
	full := int64(0)
	ev.At["ext.near@two"] = plan.Seen{Room: &extensions.Capacity{Max: &full}}
	d, lacks = decide(t, cat, a, ev)
	if d.Choice.Chosen == nil || d.Choice.Chosen.ID() != "ext.near@one" || !lacks.Nothing() {
		t.Fatalf("the silent one is the last resort: %v, lacks %+v", d.Choice.Chosen, lacks)
	}
	ev.At["ext.near@one"] = plan.Seen{Room: &extensions.Capacity{Max: &full}, Asked: true}
	d, lacks = decide(t, cat, a, ev)
	if err := d.Refused(); !extensions.IsKind(err, extensions.KindExhausted) || !lacks.Nothing() {
		t.Fatalf("all full: %v, lacks %+v", err, lacks)
	}
}

// Recorded facts that rule every place out are looked up again, once.
func TestFactsThatLeaveNoPlaceAreLackedOnce(t *testing.T) {
	t.Parallel()
	cat := world(t, mine+"requires: { arch: [arm64] }\n")
	a := ask(t, cat, plan.Request{Hosts: []string{"one"}})
	ev := plan.Evidence{Hosts: []extensions.Host{host("one")}, Create: true, At: map[string]plan.Seen{"ext.near@one": {
		Facts: &extensions.Facts{Narrowing: extensions.Narrowing{OS: []string{"linux"}, Arch: []string{"amd64"}}}, Recorded: true,
		Narrowed: &plan.Narrowed{Capabilities: cat.Bindings[1].Capabilities}}}}
	if !a.Machine {
		t.Fatal("the profile demands no machine")
	}
	_, lacks := decide(t, cat, a, ev)
	if len(lacks.Facts) != 1 || lacks.Facts[0].HostName() != "one" {
		t.Fatalf("lacks %+v", lacks)
	}
	ev.Probed = true
	d, lacks := decide(t, cat, a, ev)
	if !lacks.Nothing() || d.Refused() == nil {
		t.Errorf("after a probe: lacks %+v, %v", lacks, d.Refused())
	}
}

// A missing credential refuses a create and is told by a plan.
func TestCredentialsDecideACreateAlone(t *testing.T) {
	t.Parallel()
	cat := world(t, mine)
	a := ask(t, cat, plan.Request{})
	lack := map[string]plan.Seen{"ext.far": {Missing: [][]extensions.CredentialField{{{Name: "api_key", Env: "FAR_KEY", Required: true}}}}}
	d, _ := decide(t, cat, a, plan.Evidence{At: lack})
	if d.Refused() != nil || d.Choice.Chosen.ID() != "ext.far" || len(d.Notices) != 1 || !strings.Contains(d.Notices[0].Detail, "FAR_KEY") {
		t.Errorf("a plan: %v, %+v", d.Refused(), d.Notices)
	}
	known := d.Planned(nil)
	d, _ = decide(t, cat, a, plan.Evidence{At: map[string]plan.Seen{}})
	if again := d.Planned(nil); again.Extension != known.Extension || again.Estimate.Maximum != known.Estimate.Maximum ||
		len(again.Notices) != 0 {
		t.Errorf("a credential changed a planned value: %+v", again)
	}
	d, _ = decide(t, cat, a, plan.Evidence{At: lack, Create: true})
	if err := d.Refused(); err == nil || !strings.Contains(err.Error(), "api_key") {
		t.Errorf("a create: %v", err)
	}
}
