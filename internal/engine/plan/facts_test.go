package plan_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A create asks for the facts of its first choice if they are due; what they tell
// decides, at that place alone.
func TestACreateLacksTheFactsOfItsFirstChoice(t *testing.T) {
	t.Parallel()
	cat := world(t, mine)
	a := ask(t, cat, plan.Request{Hosts: []string{"one"}})
	hosts := []extensions.Host{host("one")}
	due := plan.Evidence{Hosts: hosts, Create: true, At: map[string]plan.Seen{
		"ext.near@one": {Stale: true, Asked: true}, "ext.far": {Stale: true}}}
	if _, lacks := decide(t, cat, a, plan.Evidence{Hosts: hosts, At: due.At}); !lacks.Nothing() {
		t.Errorf("a plan lacks %+v", lacks)
	}
	_, lacks := decide(t, cat, a, due)
	if len(lacks.Facts) != 1 || lacks.Facts[0].ID() != "ext.near@one" {
		t.Fatalf("lacks %+v", lacks)
	}
	due.At["ext.near@one"] = plan.Seen{Facts: &extensions.Facts{Unfit: []string{"Docker is missing"}}, Recorded: true, Asked: true}
	due.Probed = true
	d, _ := decide(t, cat, a, due)
	if err := d.Refused(); err == nil || !strings.Contains(err.Error(), "Docker is missing") {
		t.Errorf("an unfit place: %v", err)
	}
}

// A Docker engine on a Mac runs Linux, and one at DOCKER_HOST runs whatever is there.
func TestOnlyProcessesOfThisMachineAreOfItsKind(t *testing.T) {
	t.Parallel()
	machine, ssh := host("one"), host("two")
	machine.Local, machine.SSH = true, nil
	able := extensions.Capabilities{OS: []string{"linux"}, Arch: []string{"*"}}
	for _, c := range []struct {
		native bool
		on     *extensions.Host
		want   string
	}{{true, nil, "darwin/arm64"}, {true, &machine, "darwin/arm64"}, {true, &ssh, "linux/*"}, {false, nil, "linux/*"}, {false, &machine, "linux/*"}} {
		b := catalog.Binding{ID: "ext.x", Capabilities: able, Descriptor: extensions.Descriptor{Native: c.native, Capabilities: able,
			Places: []extensions.Place{extensions.PlaceMachine, extensions.PlaceHost}}}
		at := plan.Candidate(b, c.on, 0)
		if got := plan.OnMachine(&at, plan.Machine{OS: "darwin", Arch: "arm64"}); got.OS[0]+"/"+got.Arch[0] != c.want {
			t.Errorf("native %v at %v: %v/%v, want %s", c.native, c.on, got.OS, got.Arch, c.want)
		}
	}
}

// What a machine is cannot be mended: the refusal does not name what else it lacks.
func TestARefusalOfAMachinesKindNamesNothingElse(t *testing.T) {
	t.Parallel()
	cat := world(t, mine+"requires: { arch: [arm64] }\n")
	a := ask(t, cat, plan.Request{Hosts: []string{"one"}})
	hosts := []extensions.Host{host("one")}
	d, _ := decide(t, cat, a, plan.Evidence{Hosts: hosts, Create: true, Probed: true, At: map[string]plan.Seen{
		"ext.near@one": {Recorded: true, Asked: true, Facts: &extensions.Facts{Notes: []string{"gpu: install the toolkit"},
			Narrowing: extensions.Narrowing{Arch: []string{"amd64"}, OS: []string{"linux"}}}}}})
	if err := d.Refused(); err == nil || !strings.Contains(err.Error(), "viability.requires.arch") || strings.Contains(err.Error(), "toolkit") {
		t.Errorf("%v", err)
	}
}
