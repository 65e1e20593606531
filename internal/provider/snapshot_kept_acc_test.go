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
		resource.TestStep{Config: taken("  kind = \"memory\""), ExpectError: regexp.MustCompile(`(?s)This kind of snapshot.*"memory"`)},
		resource.TestStep{Config: taken("  kind = \"picture\""), ExpectError: regexp.MustCompile(`(?s)kind`)},
		resource.TestStep{Config: taken("  retention = \"0s\""), ExpectError: regexp.MustCompile(`(?s)retention`)},
		resource.TestStep{Config: taken("  live = true"), ConfigPlanChecks: snapAction(plancheck.ResourceActionReplace)},
	)
	if snaps, err := b.vendor().Snapshots(); err != nil || len(snaps) > 0 {
		t.Errorf("snapshots left: %v %v", snaps, err)
	}
}
