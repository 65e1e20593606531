package provider

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// A snapshot's kind and whether it was taken live are its own; how long it is kept changes in place.
func TestASnapshotsRetentionChangesInPlaceAndItsKindDoesNot(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	taken := func(args string) string {
		return b.config(sandboxHCL(`name = "one"`) + "resource \"sandboxer_snapshot\" \"s\" {\n  sandbox_id = sandboxer_sandbox.a.id\n" + args + "\n}\n")
	}
	is := func(name string, v knownvalue.Check) []statecheck.StateCheck {
		return []statecheck.StateCheck{statecheck.ExpectKnownValue(snap, tfjsonpath.New(name), v)}
	}
	var first string
	remember := func(s *terraform.State) error {
		first = s.RootModule().Resources[snap].Primary.ID
		return nil
	}
	same := func(s *terraform.State) error {
		if id := s.RootModule().Resources[snap].Primary.ID; id != first {
			t.Errorf("the snapshot %s became %s", first, id)
		}
		return nil
	}
	stamped := knownvalue.StringRegexp(regexp.MustCompile(`^20.*Z$`))
	b.run(
		resource.TestStep{Config: taken(""), Check: remember, ConfigStateChecks: append(is("kind", knownvalue.StringExact("metadata")),
			is("expires_at", knownvalue.Null())...)},
		resource.TestStep{Config: taken("  kind = \"metadata\"\n  live = false"), ConfigPlanChecks: snapAction(plancheck.ResourceActionUpdate),
			Check: same}, // only the arguments differ
		resource.TestStep{Config: taken("  retention = \"30d\""), ConfigPlanChecks: snapAction(plancheck.ResourceActionUpdate), Check: same,
			ConfigStateChecks: is("expires_at", stamped)},
		resource.TestStep{ResourceName: snap, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"triggers"}},
		resource.TestStep{Config: taken("  retention = \"720h\""), Check: same, ConfigStateChecks: is("expires_at", stamped)},
		resource.TestStep{Config: taken(""), ConfigPlanChecks: snapAction(plancheck.ResourceActionUpdate), Check: same,
			ConfigStateChecks: is("expires_at", knownvalue.Null())},
		resource.TestStep{Config: taken("  kind = \"memory\""), ExpectError: regexp.MustCompile(`(?s)This snapshot cannot be.*"memory"`)},
		resource.TestStep{Config: taken("  kind = \"picture\""), ExpectError: regexp.MustCompile(`(?s)kind`)},
		resource.TestStep{Config: taken("  retention = \"0s\""), ExpectError: regexp.MustCompile(`(?s)retention`)},
		resource.TestStep{Config: taken("  live = true"), ConfigPlanChecks: snapAction(plancheck.ResourceActionReplace)},
	)
	if snaps, err := b.vendor().Snapshots(); err != nil || len(snaps) > 0 {
		t.Errorf("snapshots left: %v %v", snaps, err)
	}
}

// A sandbox that ends between a plan and its apply takes no snapshot with it.
func TestASnapshotIsKeptIfItsSandboxEndsBeforeItIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	body := func(more string) string {
		return sandboxHCL("name = \"one\"\non_expiry = \"keep\"") +
			"resource \"sandboxer_snapshot\" \"s\" {\n  sandbox_id = sandboxer_sandbox.a.id\n" + more + "}\n"
	}
	c.write(body(""))
	c.apply()
	first := c.stateOf(snap, "id")
	c.write(body("  name = \"again\"\n"))
	c.must("plan", "-out=p", "-no-color", "-input=false")
	if _, err := b.engine().Destroy(t.Context(), b.only().Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(err)
	}
	out, code := c.try(nil, "apply", "-no-color", "-input=false", "p")
	if code == 0 || !says(out, "no snapshot can be taken") || !says(out, "undo the change of its arguments") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if kept, err := b.vendor().Snapshots(); err != nil || len(kept) != 1 || c.stateOf(snap, "id") != first {
		t.Errorf("the vendor keeps %v, %v; the state has %v, first %v", kept, err, c.stateOf(snap, "id"), first)
	}
	c.destroy() // needs no live sandbox
	c.nothingLeft()
}
