package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// touched changes everything of a catalog that is no number of the sandboxes of
// the test: comments, dates, sources, and files about something else. n makes
// each time another one.
func (b *bed) touched(n int) {
	b.t.Helper()
	b.profile("profile.stub", fmt.Sprintf("# edit %d\nextends: profile.base\nextension: ext.saas-stub\nisolation: { level: container "+
		"}\nresources: { cpu: 1, memory_mb: 512 }\ninputs: { count: { type: number } }\n", n))
	b.profile("profile.anywhere", fmt.Sprintf("# edit %d\nextends: profile.base\nisolation: { level: process }\n", n))
	b.profile(fmt.Sprintf("profile.unrelated-%d", n), "extends: profile.base\nextension: ext.local\n")
	b.write(fmt.Sprintf("catalog/extensions/ext.another-%d.yaml", n), // sorts before ext.local and costs the same
		fmt.Sprintf("id: ext.another-%d\nhandler: local\ncost: { per_hour: \"0.00 USD\", source: \"edit %d\", as_of: \"2026-10-%02d\" }\n", n, n,
			n+1))
	raw, err := os.ReadFile("../engine/catalog/builtin/prices/prices.saas-stub.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	if !strings.Contains(string(raw), "2026-08-01") || !strings.Contains(string(raw), "source: ") {
		b.t.Fatalf("the price book has no date or source to change:\n%s", raw)
	}
	dated := strings.ReplaceAll(string(raw), "2026-08-01", fmt.Sprintf("2026-09-%02d", n+1))
	b.write("catalog/prices/prices.saas-stub.yaml", strings.ReplaceAll(dated, "source: ", fmt.Sprintf("source: edit %d, formerly ", n)))
}

// A saved plan is applied although the catalog's bytes changed, as long as no
// number of its sandboxes did.
func TestASavedPlanIsAppliedAfterAnEditThatChangesNoNumber(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	c := newCLI(t, b)
	body := func(ttl, trigger string) string {
		return fmt.Sprintf(`
resource "sandboxer_host" "here" {
  name     = "here"
  local    = true
  labels   = { edit = %[2]q }
  cost     = { per_hour = "0.40 USD", cpu = 8, memory_mb = 16384 }
}
resource "sandboxer_sandbox" "vendor" {
  profile = "profile.stub"
  name    = "vendor"
  ttl     = %[1]q
}
resource "sandboxer_sandbox" "replaced" {
  profile  = "profile.stub"
  ttl      = "1h"
  triggers = { edit = %[2]q }
}
resource "sandboxer_sandbox" "anywhere" {
  profile = "profile.anywhere"
  ttl     = %[1]q
}
resource "sandboxer_sandbox" "host" {
  profile = "profile.quickstart"
  ttl     = %[1]q
  hosts   = [sandboxer_host.here.ref]
}
resource "sandboxer_snapshot" "kept" {
  sandbox_id = sandboxer_sandbox.vendor.id
  triggers   = { edit = %[2]q }
}
output "cost" { value = sandboxer_sandbox.vendor.estimate }
`, ttl, trigger)
	}
	b.touched(0)
	for i, step := range []struct{ name, ttl, trigger, counts string }{
		{"create", "1h", "1", "6 added, 0 changed, 0 destroyed"},
		{"a later end", "2h", "1", "0 added, 3 changed, 0 destroyed"},
		{"replace", "2h", "2", "2 added, 2 changed, 2 destroyed"},
	} {
		c.write(body(step.ttl, step.trigger))
		c.must("plan", "-out=p", "-no-color", "-input=false")
		b.touched(i + 1)
		if out := c.must("apply", "-no-color", "-input=false", "p"); !says(out, step.counts) {
			t.Errorf("%s: %s", step.name, out)
		}
		c.planIsEmpty()
	}
	c.must("plan", "-destroy", "-out=p", "-no-color", "-input=false")
	b.touched(4)
	c.must("apply", "-no-color", "-input=false", "p")
	c.nothingLeft()
}

// Places without a price come, go and change their order without changing what
// is known: that there is no price for all of them.
func TestASavedPlanIsAppliedAfterAnEditOfPlacesWithoutAPrice(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	c := newCLI(t, b)
	b.profile("profile.anywhere", "extends: profile.base\nisolation: { level: process }\n")
	place := func(name string, priority int) {
		b.write("catalog/extensions/ext."+name+".yaml", fmt.Sprintf("id: ext.%s\nhandler: local\npriority: %d\n", name, priority))
	}
	place("one", 10)
	for i, step := range []struct {
		name string
		edit func()
	}{
		{"another place", func() { place("another", 0) }},
		{"priorities swapped", func() { place("one", 0); place("another", 10) }},
		{"one with half a price", func() {
			b.write("catalog/prices/prices.two.yaml",
				"id: prices.two\nversion: \"1\"\nextension: ext.two\ncurrency: USD\nas_of: \"2026-11-01\"\nsource: test\nconfidence: "+
					"estimated\nbilling: wall-clock\nidle: metered\ncomponents:\n  - { component: sandbox, unit: sandbox-hour, confidence: unknown }\n")
			place("two", 5)
		}},
		{"a place less", func() {
			if err := os.Remove(filepath.Join(b.catalog, "extensions", "ext.two.yaml")); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		c.write(fmt.Sprintf("resource \"sandboxer_sandbox\" \"a\" {\n  profile  = \"profile.anywhere\"\n  triggers = { edit = \"%d\" }\n}\n", i))
		c.must("plan", "-out=p", "-no-color", "-input=false")
		step.edit()
		if out := c.must("apply", "-no-color", "-input=false", "p"); !says(out, "1 added") {
			t.Errorf("%s: %s", step.name, out)
		}
		if e, _ := c.stateOf("sandboxer_sandbox.a", "estimate").(map[string]any); e["confidence"] != "unknown" || e["maximum"] != nil {
			t.Errorf("%s: %v", step.name, e)
		}
		c.planIsEmpty()
	}
	c.destroy()
	c.nothingLeft()
}

// What is planned of a cost are numbers alone.
func TestAPlanNamesNoOriginOfItsNumbers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	b.touched(1)
	c.write(sandboxHCL("name = \"one\"\nttl = \"2h\""))
	c.must("plan", "-out=p", "-no-color", "-input=false")
	shown := c.must("show", "-json", "p")
	for _, origin := range []string{"2026-09-", "edit 1", "digest", "as_of", "refusals"} {
		if strings.Contains(shown, origin) {
			t.Errorf("the plan says %q:\n%s", origin, shown)
		}
	}
	for _, number := range []string{`"maximum":"0.118"`, `"summary":"0.0585 USD an hour, at most 0.118 USD for 2h"`} {
		if !strings.Contains(strings.ReplaceAll(shown, `": "`, `":"`), number) {
			t.Errorf("the plan does not say %s:\n%s", number, shown)
		}
	}
}

// Where a number did change, Terraform itself refuses the saved plan, and
// planning again goes on.
func TestASavedPlanIsRefusedAfterAnotherPrice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	b.touched(1)
	c.write(sandboxHCL("name = \"one\"\nttl = \"2h\""))
	c.must("plan", "-out=p", "-no-color", "-input=false")
	raw, err := os.ReadFile("../engine/catalog/builtin/prices/prices.saas-stub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.write("catalog/prices/prices.saas-stub.yaml", strings.ReplaceAll(string(raw), "0.000014", "0.000028"))
	if out, code := c.try(nil, "apply", "-no-color", "-input=false", "p"); code == 0 || !says(out, "inconsistent final plan") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if left := b.live(); len(left) > 0 {
		t.Errorf("made all the same: %v", left)
	}
	c.apply()
	c.destroy()
}
