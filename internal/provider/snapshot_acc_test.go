package provider

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

const snap = "sandboxer_snapshot.s"

func snapAction(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(snap, a)}}
}

func TestASnapshotOutlivesItsSandbox(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	const taken = "resource \"sandboxer_snapshot\" \"s\" {\n  sandbox_id = sandboxer_sandbox.a.id\n  name = \"seeded\"\n  triggers = { v = " +
		"\"1\" }\n}\n"
	renamed := sandboxHCL(`name = "second"`) + taken
	var first string
	rememberSnap := func(s *terraform.State) error {
		first = s.RootModule().Resources[snap].Primary.ID
		return nil
	}
	same := func(s *terraform.State) error {
		if id := s.RootModule().Resources[snap].Primary.ID; id != first {
			t.Errorf("the snapshot %s became %s", first, id)
		}
		return nil
	}
	b.run(
		resource.TestStep{Config: b.config(sandboxHCL(`name = "first"`) + taken), Check: rememberSnap,
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(snap, tfjsonpath.New("id"),
				knownvalue.StringRegexp(regexp.MustCompile(`^snp-`)))}},
		resource.TestStep{ResourceName: snap, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"triggers"}},
		resource.TestStep{Config: b.config(renamed), ConfigPlanChecks: snapAction(plancheck.ResourceActionUpdate), Check: same},
		resource.TestStep{Config: b.config(renamed +
			"resource \"sandboxer_sandbox\" \"restored\" {\n  profile = \"profile.stub\"\n  name = \"restored\"\n  from_snapshot = " +
			"sandboxer_snapshot.s.id\n}\n"), Check: same},
		resource.TestStep{Config: b.config(replaced(renamed, `v = "1"`, `v = "2"`)),
			ConfigPlanChecks: snapAction(plancheck.ResourceActionReplace)},
	)
	if snaps, err := b.vendor().Snapshots(); err != nil || len(snaps) > 0 {
		t.Errorf("snapshots left: %v %v", snaps, err)
	}
}

func TestALocalWorkspaceIsSeededSnapshottedAndRestored(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	b.write("app/hello.txt", "hello from the folder\n")
	b.write("app/skipped.log", "not for the sandbox\n")
	b.write("app/.sandboxerignore", "*.log\n")
	repo := filepath.Join(b.root, "app")
	a := "resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.quickstart\"\n  name = \"seed\"\n  ttl = \"30m\"\n  inputs = { repo " +
		"= \"" + repo + "\" }\n  secrets_wo = { TOKEN = \"canary\" }\n}\n"
	s := "resource \"sandboxer_snapshot\" \"s\" {\n  sandbox_id = sandboxer_sandbox.a.id\n}\n"
	restored := "resource \"sandboxer_sandbox\" \"b\" {\n  profile = \"profile.quickstart\"\n  name = \"copy\"\n  ttl = \"30m\"\n  " +
		"from_snapshot = sandboxer_snapshot.s.id\n}\n"
	b.run(
		resource.TestStep{Config: b.config(a), ConfigStateChecks: []statecheck.StateCheck{
			value("extension", knownvalue.StringExact("ext.local")), value("expiry", knownvalue.StringExact("host"))}},
		resource.TestStep{PreConfig: func() {
			b.inside("seed", `test "$(cat hello.txt)" = "hello from the folder" && test ! -e skipped.log && test "$TOKEN" = canary && echo changed > made.txt`)
		}, Config: b.config(a), PlanOnly: true},
		resource.TestStep{Config: b.config(a + s)},
		resource.TestStep{Config: b.config(a + s + restored)},
		resource.TestStep{PreConfig: func() { b.inside("copy", `test "$(cat made.txt)" = changed`) },
			Config: b.config(a + s + restored), PlanOnly: true},
	)
}

// inside runs a script in the live sandbox of that name, wants success and returns what it printed.
func (b *bed) inside(name, script string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e := b.engine()
	sb, err := e.Lookup(ctx, "", "acme/web", name)
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := e.Exec(ctx, sb.Receipt, engine.ExecRequest{Shell: script})
	if err != nil || res.ExitCode != 0 {
		b.t.Fatalf("in %s: exit %d, %q %q, %v", name, res.ExitCode, res.Stdout, res.Stderr, err)
	}
	return string(res.Stdout)
}

func TestAQuoteIsTheEstimateOfThePlan(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	const quote = "data.sandboxer_quote.q"
	cfg := b.config("data \"sandboxer_quote\" \"q\" {\n  profile = \"profile.stub\"\n  ttl = \"2h\"\n}\n" + sandboxHCL(`ttl = "2h"`))
	pairs := []resource.TestCheckFunc{}
	for _, f := range []string{"currency", "maximum"} {
		pairs = append(pairs, resource.TestCheckResourceAttrPair(quote, f, addr, "estimate."+f))
	}
	b.run(
		resource.TestStep{Config: cfg, Check: resource.ComposeTestCheckFunc(pairs...),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(quote, tfjsonpath.New("extension"),
				knownvalue.StringExact("ext.saas-stub"))}},
		resource.TestStep{Config: b.config("data \"sandboxer_quote\" \"q\" {\n  profile = \"profile.stub\"\n}\n"),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(quote, tfjsonpath.New("ttl"), knownvalue.StringExact("1h"))}},
		resource.TestStep{Config: b.config("data \"sandboxer_quote\" \"q\" {\n  profile = \"profile.stubb\"\n}\n"),
			ExpectError: regexp.MustCompile(`profile\.stub`)},
		resource.TestStep{Config: b.config("data \"sandboxer_quote\" \"q\" {\n  profile = \"profile.compose-e2e\"\n  inputs = { repo = \".\" " +
			"}\n}\n"), ExpectError: regexp.MustCompile(`(?s)No quote`)},
	)
}

// A price that changes is no difference of a live sandbox.
func TestANewPriceIsNoDifference(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`name = "priced"`))
	b.run(
		resource.TestStep{Config: cfg},
		resource.TestStep{PreConfig: func() {
			raw, err := os.ReadFile("../engine/catalog/builtin/prices/prices.saas-stub.yaml")
			if err != nil {
				t.Fatal(err)
			}
			b.write("catalog/prices/prices.saas-stub.yaml", strings.ReplaceAll(string(raw), "0.000014", "0.000028"))
		}, Config: cfg, PlanOnly: true},
		resource.TestStep{Config: b.config(sandboxHCL("name = \"priced\"\nttl = \"2h\"")),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(addr, plancheck.ResourceActionUpdate), // by the price it was made with
				plancheck.ExpectKnownValue(addr, tfjsonpath.New("estimate").AtMapKey("maximum"), knownvalue.StringExact("0.118")),
			}}, ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(addr, tfjsonpath.New("estimate").AtMapKey("maximum"), knownvalue.StringExact("0.118"))}},
	)
}
