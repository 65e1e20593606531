package provider

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

// At Vercel a snapshot ends its sandbox: that must be allowed, and then the state of both settles.
func TestASnapshotThatEndsItsSandboxIsAllowedAndLeavesAnEmptyPlan(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := verceltest.Start(t)
	binding, err := json.Marshal(map[string]any{"id": "ext.vercel", "handler": "vercel", "enabled": true,
		"config": map[string]any{"api_url": v.APIURL}})
	if err != nil {
		t.Fatal(err)
	}
	b.write("catalog/extensions/ext.vercel.yaml", string(binding))
	b.profile("profile.rented", "extends: profile.base\nextension: ext.vercel\nttl: { default: 30m }\n")
	config := func(body string) string {
		login := fmt.Sprintf("  account = \"acme/web\"\n  credentials = { \"ext.vercel\" = { token = %q, team_id = %q, project_id = %q } }\n",
			v.Token, v.Team, v.Project)
		return strings.Replace(b.config(body), "  account   = \"acme/web\"\n", login, 1)
	}
	const source = "resource \"sandboxer_sandbox\" \"source\" {\n  profile = \"profile.rented\"\n  name = \"one\"\n  on_expiry = \"keep\"\n}\n"
	taken := func(more string) string {
		return source + "resource \"sandboxer_snapshot\" \"s\" {\n  sandbox_id = sandboxer_sandbox.source.id\n" + more + "}\n"
	}
	whole := config(taken("  allow_end = true\n  retention = \"3d\"\n") +
		"resource \"sandboxer_sandbox\" \"restored\" {\n  profile = \"profile.rented\"\n  name = \"one\"\n  from_snapshot = sandboxer_snapshot.s.id\n}\n")
	alone := func(s *terraform.State) error {
		there := v.Sandboxes()
		restored := s.RootModule().Resources["sandboxer_sandbox.restored"].Primary.ID
		if len(there) != 1 || there[0].Name != restored || len(v.Snapshots()) != 1 {
			t.Errorf("the vendor has %+v and the snapshots %v, want %s alone", there, v.Snapshots(), restored)
		}
		return nil
	}
	b.run(
		resource.TestStep{Config: config(source)},
		resource.TestStep{Config: config(taken("")), ExpectError: regexp.MustCompile(`ends\s+its\s+sandbox`)},
		resource.TestStep{Config: whole, Check: alone},
		resource.TestStep{ResourceName: snap, ImportState: true, ImportStateVerify: true},
		// The sandbox has ended, so the snapshot is the only copy of its work.
		resource.TestStep{Config: strings.Replace(whole, "3d", "3d\"\n  name = \"again", 1),
			ExpectError: regexp.MustCompile(`(?s)This snapshot cannot be.*cannot\s+be\s+changed`)},
		resource.TestStep{Config: whole, ConfigPlanChecks: empty(), Check: alone},
	)
	if left, kept := v.Sandboxes(), v.Snapshots(); len(left)+len(kept) > 0 {
		t.Errorf("left: %+v, %v", left, kept)
	}
}
