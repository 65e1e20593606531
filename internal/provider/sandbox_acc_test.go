package provider

import (
	"context"
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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

const addr = "sandboxer_sandbox.a"

func sandboxHCL(body string) string {
	return "resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.stub\"\n" + body + "\n}\n"
}

func action(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(addr, a)}}
}

func empty() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

func value(name string, want knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(addr, tfjsonpath.New(name), want)
}

func remember(name string, into *string) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		*into = s.RootModule().Resources[addr].Primary.Attributes[name]
		return nil
	}
}

func TestASandboxIsMadePlannedEmptyAndDestroyed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`
  name     = "one"
  ttl      = "2h"
  inputs   = { count = 3, flag = true, ref = "main" }
  env      = { GREETING = "it's \"quoted\"; $HOME\nsecond line" }
  max_cost = "5.00 USD"
  triggers = { a = "1" }
  consumer = { actor = "atm", run_id = "7" }
  timeouts = { create = "5m" }`))
	b.run(
		resource.TestStep{Config: cfg,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(addr, plancheck.ResourceActionCreate),
				plancheck.ExpectKnownValue(addr, tfjsonpath.New("extension"), knownvalue.StringExact("ext.saas-stub")),
				plancheck.ExpectKnownValue(addr, tfjsonpath.New("account"), knownvalue.StringExact("acme/web")),
				plancheck.ExpectKnownValue(addr, tfjsonpath.New("scope"), knownvalue.StringExact("session")),
				plancheck.ExpectKnownValue(addr, tfjsonpath.New("profile_version"), knownvalue.StringExact("1.0.0")),
				plancheck.ExpectKnownValue(addr, tfjsonpath.New("estimate").AtMapKey("maximum"), knownvalue.NotNull()),
				plancheck.ExpectKnownValue(addr, tfjsonpath.New("estimate").AtMapKey("currency"), knownvalue.StringExact("USD")),
				plancheck.ExpectUnknownValue(addr, tfjsonpath.New("id")),
				plancheck.ExpectUnknownValue(addr, tfjsonpath.New("route")),
			}},
			ConfigStateChecks: []statecheck.StateCheck{
				value("state", knownvalue.StringExact("ready")), value("name", knownvalue.StringExact("one")),
				value("id", knownvalue.StringRegexp(regexp.MustCompile(`^sbx-[a-z2-7]{20}$`))),
				value("expiry", knownvalue.StringExact("native")), value("handle", knownvalue.NotNull()),
				statecheck.ExpectKnownValue(addr, tfjsonpath.New("route").AtMapKey("chosen"), knownvalue.NotNull()),
				value("on_expiry", knownvalue.StringExact("replace")), value("deletion_protection", knownvalue.Bool(false)),
			}},
		resource.TestStep{RefreshState: true},
	)
}

func TestAnImportRestoresEveryArgument(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`
  name_prefix            = "imp-"
  ttl                    = "2h"
  inputs                 = { count = 3, flag = true, ref = "main" }
  env                    = { A = "1" }
  secrets_wo             = { TOKEN = "x" }
  secrets_wo_version     = 4
  scope                  = "session"
  max_cost               = "5.00 USD"
  on_expiry              = "keep"
  on_conflict            = "adopt"
  on_unreachable_destroy = "forget"
  billing                = "byok"
  triggers               = { a = "1" }
  deletion_protection    = false
  consumer               = { actor = "agt", harness = "h", run_id = "7", session_id = "s", job_id = "j" }
  timeouts               = { create = "5m", delete = "1m" }`))
	steps := []resource.TestStep{
		{Config: cfg},
		{ResourceName: addr, ImportState: true, ImportStateVerify: true},
		{ResourceName: addr, ImportState: true, ImportStateVerify: true, ImportStateIdFunc: func(s *terraform.State) (string, error) {
			a := s.RootModule().Resources[addr].Primary.Attributes
			return a["account"] + "/" + a["name"], nil
		}},
		{ResourceName: addr, ImportState: true, ImportStateId: "sbx-aaaaaaaaaaaaaaaaaaaa", ExpectError: regexp.MustCompile(`does\s+not\s+know`)},
		{ResourceName: addr, ImportState: true, ImportStateId: "nonsense", ExpectError: regexp.MustCompile(`not a sandbox`)},
	}
	b.run(steps...)
}

func TestAnImportBlockWithTheSameConfigurationPlansNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	body := sandboxHCL(`
  name   = "adopted"
  ttl    = "2h"
  inputs = { count = 3, flag = true }
  env    = { A = "1" }
  secrets_wo_version = 1`)
	requireTerraform(t)
	sb, err := b.engine().Create(context.Background(), engine.Request{Profile: "profile.stub", Name: "adopted", TTL: "2h",
		Inputs: map[string]any{"count": 3, "flag": true}, Env: map[string]string{"A": "1"}, SecretsVersion: 1}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.run(resource.TestStep{
		Config: b.config(body + "import {\n  to = sandboxer_sandbox.a\n  id = \"" + string(sb.ID) + "\"\n}\n"),
		ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
			plancheck.ExpectResourceAction(addr, plancheck.ResourceActionNoop)}},
		ConfigStateChecks: []statecheck.StateCheck{value("id", knownvalue.StringExact(string(sb.ID))),
			value("scope", knownvalue.StringExact("session"))},
	})
}

func TestTTLChangesInPlace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var id, before, after string
	b.run(
		resource.TestStep{Config: b.config(sandboxHCL(`ttl = "2h"`)),
			Check: resource.ComposeTestCheckFunc(remember("id", &id), remember("expires_at", &before))},
		resource.TestStep{Config: b.config(sandboxHCL(`ttl = "120m"`)), PlanOnly: true},
		resource.TestStep{Config: b.config(sandboxHCL(`ttl = "3h"`)), ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			Check: resource.ComposeTestCheckFunc(remember("expires_at", &after), resource.TestCheckResourceAttrPtr(addr, "id", &id))},
		resource.TestStep{Config: b.config(sandboxHCL(`ttl = "48h"`)), ExpectError: regexp.MustCompile(`(?i)ttl`)},
		resource.TestStep{Config: b.config(sandboxHCL(`ttl = "1h"`)), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
	)
	x, _ := time.Parse(time.RFC3339, before)
	y, _ := time.Parse(time.RFC3339, after)
	if y.Sub(x) != time.Hour {
		t.Errorf("the end moved from %s to %s, want one hour", before, after)
	}
}

func TestAnEndMovedByOthersIsAccepted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`ttl = "1h"`))
	b.run(
		resource.TestStep{Config: cfg},
		resource.TestStep{PreConfig: func() {
			if _, err := b.engine().ExtendTTL(context.Background(), b.only().Receipt, 5*time.Hour); err != nil {
				t.Fatal(err)
			}
		}, Config: cfg, PlanOnly: true},
	)
}

func TestAnExpiredSandboxIsReplacedVisibly(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`name = "short"`))
	var first string
	b.run(
		resource.TestStep{Config: cfg, Check: remember("id", &first)},
		resource.TestStep{PreConfig: func() { b.expire(2 * time.Hour) }, Config: cfg, PlanOnly: true, ExpectNonEmptyPlan: true},
		resource.TestStep{Config: cfg, ConfigPlanChecks: action(plancheck.ResourceActionReplace), Check: func(s *terraform.State) error {
			if id := s.RootModule().Resources[addr].Primary.ID; id == first {
				t.Errorf("the expired sandbox %s was kept", id)
			}
			return nil
		}},
	)
}

func TestAnExpiredSandboxIsKeptOnRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`on_expiry = "keep"`))
	b.run(
		resource.TestStep{Config: cfg},
		resource.TestStep{PreConfig: func() { b.expire(2 * time.Hour) }, Config: cfg, ConfigPlanChecks: empty(),
			ConfigStateChecks: []statecheck.StateCheck{value("state", knownvalue.StringExact("expired"))}},
	)
}

// expire ends at the vendor what is due within d, and sets its clock right again.
func (b *bed) expire(d time.Duration) {
	b.t.Helper()
	for _, by := range []time.Duration{d, -d} {
		if err := b.vendor().Advance(by); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestALostSandboxIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`name = "lost"`))
	b.run(
		resource.TestStep{Config: cfg},
		resource.TestStep{PreConfig: func() {
			if err := b.vendor().Vanish(string(b.only().ID)); err != nil {
				t.Fatal(err)
			}
		}, Config: cfg, ConfigPlanChecks: action(plancheck.ResourceActionCreate)},
	)
}

func TestWhatCannotBeReachedStaysInTheState(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`name = "far"`))
	b.run(
		resource.TestStep{Config: cfg},
		resource.TestStep{PreConfig: func() { b.script(vendor.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable}) },
			Config: cfg, ExpectError: regexp.MustCompile(`(?s)-refresh=false.*removed \{`)},
		resource.TestStep{PreConfig: func() { b.script() }, Config: cfg, PlanOnly: true},
	)
}

func TestATakenOverSandboxLeavesTheState(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`name = "mine"`))
	b.run(
		resource.TestStep{Config: cfg},
		resource.TestStep{PreConfig: func() {
			req := b.only().Request
			req.OnConflict = "adopt"
			if _, err := b.engine().Create(context.Background(), req, nil, nil); err != nil {
				t.Fatal(err)
			}
		}, Config: cfg, ExpectError: regexp.MustCompile(`(?s)sbx-\S+:\s+it\s+has\s+the\s+name.*import \{`)},
		resource.TestStep{Config: b.config(sandboxHCL("name = \"mine\"\n on_conflict = \"adopt\"")),
			ConfigPlanChecks: action(plancheck.ResourceActionCreate)},
	)
}

func TestProtectionHoldsInPlanAndAtDestroy(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	on := b.config(sandboxHCL("name = \"safe\"\n deletion_protection = true"))
	protected := regexp.MustCompile(`is\s+protected`)
	b.run(
		resource.TestStep{Config: on},
		resource.TestStep{Config: on, Destroy: true, ExpectError: protected},
		resource.TestStep{Config: b.config(sandboxHCL("name = \"other\"\n deletion_protection = true")), ExpectError: protected},
		resource.TestStep{Config: b.config(sandboxHCL("name = \"other\"\n deletion_protection = false")), ExpectError: protected},
		resource.TestStep{Config: on, Taint: []string{addr}, ExpectError: protected},
		resource.TestStep{PreConfig: func() { b.expire(2 * time.Hour) }, Config: on, ConfigPlanChecks: action(plancheck.ResourceActionReplace)},
		resource.TestStep{Config: b.config(sandboxHCL("name = \"safe\"\n deletion_protection = false")),
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
	)
}

func TestWhatReplacesAndWhatDoesNot(t *testing.T) {
	t.Parallel()
	base := `name = "NAME"
  env = { A = "1" }
  inputs = { count = 1 }
  triggers = { a = "1" }
  secrets_wo_version = 1`
	b := newBed(t)
	var before, after strings.Builder
	var checks []plancheck.PlanCheck
	for name, c := range map[string]struct {
		body string
		want plancheck.ResourceActionType
	}{
		"name":     {replaced(base, `"NAME"`, `"other"`), plancheck.ResourceActionReplace},
		"env":      {replaced(base, `A = "1"`, `A = "2"`), plancheck.ResourceActionReplace},
		"inputs":   {replaced(base, "count = 1", "count = 2"), plancheck.ResourceActionReplace},
		"triggers": {replaced(base, `a = "1"`, `a = "2"`), plancheck.ResourceActionReplace},
		"secrets":  {replaced(base, "version = 1", "version = 2"), plancheck.ResourceActionReplace},
		"policies": {base + "\nmax_cost = \"9.00 USD\"\nbilling = \"byok\"\non_expiry = \"keep\"\nconsumer = { actor = \"adm\" }\ntimeouts = { " +
			"read = \"1m\" }\ndeletion_protection = false", plancheck.ResourceActionUpdate},
		"pinned": {base + "\n#", plancheck.ResourceActionNoop},
	} {
		named := func(body string) string {
			return replaced(replaced(sandboxHCL(body), `"a"`, `"`+name+`"`), "NAME", name)
		}
		before.WriteString(named(base))
		after.WriteString(named(c.body))
		checks = append(checks, plancheck.ExpectResourceAction("sandboxer_sandbox."+name, c.want))
	}
	b.run(
		resource.TestStep{Config: b.config(before.String())},
		resource.TestStep{Config: b.config(after.String()), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: checks}},
	)
}

func replaced(s, from, to string) string {
	return regexp.MustCompile(regexp.QuoteMeta(from)).ReplaceAllString(s, to)
}

func TestANewVersionOfTheProfileReplacesAndAnEditOnlyWarns(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`name = "v"`))
	pinned := b.config(replaced(sandboxHCL(`name = "v"`), `"profile.stub"`, `"profile.stub@1.0.0"`))
	body := "extends: profile.base\nextension: ext.saas-stub\nisolation: { level: container }\nresources: { cpu: 1, memory_mb: 512 }\n"
	b.run(
		resource.TestStep{Config: cfg},
		resource.TestStep{Config: pinned, ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: cfg, ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		resource.TestStep{PreConfig: func() { b.profile("profile.stub", body+"ttl: { default: 3h, max: 9h }\n") },
			Config: b.config(sandboxHCL("name = \"v\"\nttl = \"1h\"")), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		resource.TestStep{PreConfig: func() {
			b.write("catalog/profiles/next.yaml", "id: profile.stub\nversion: \"1.1.0\"\n"+body)
		}, Config: cfg, ConfigPlanChecks: action(plancheck.ResourceActionReplace),
			ConfigStateChecks: []statecheck.StateCheck{value("profile_version", knownvalue.StringExact("1.1.0"))}},
	)
}

func TestAFailedCreateLeavesNothingOrADestroyableState(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL(`name = "f"`))
	b.run(
		resource.TestStep{PreConfig: func() { b.script(vendor.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota}) }, Config: cfg,
			ExpectError: regexp.MustCompile(`was not created`)},
		resource.TestStep{PreConfig: func() {
			b.script(vendor.Rule{Op: vendor.OpStart, Do: vendor.DoFailReady}, vendor.Rule{Op: vendor.OpDelete, Do: vendor.DoUnauthorized})
		}, Config: cfg, ExpectError: regexp.MustCompile(`was not created`)},
		resource.TestStep{PreConfig: func() { b.script() }, Config: cfg},
	)
}

// Values that are known only during the apply must never end in "Provider
// produced inconsistent …".
func TestUnknownValuesBecomeKnownDuringApply(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := func(v, ttl string) string {
		return b.config(`
resource "terraform_data" "v" {
  input            = "` + v + `"
  triggers_replace = "` + v + `"
}
resource "terraform_data" "ttl" {
  input            = "` + ttl + `"
  triggers_replace = "` + ttl + `"
}
resource "terraform_data" "inputs" {
  input = { ref = "main", count = 2 }
}
resource "sandboxer_sandbox" "a" {
  profile    = terraform_data.v.output == "" ? "profile.none" : "profile.stub"
  name       = "u-${terraform_data.v.output}"
  ttl        = terraform_data.ttl.output
  inputs     = { ref = terraform_data.v.output, count = 1 }
  env        = { V = terraform_data.v.output }
  triggers   = { v = terraform_data.v.output }
  consumer   = { run_id = terraform_data.v.output }
  secrets_wo = { S = terraform_data.v.output }
  max_cost   = "${length(terraform_data.v.output)}.00 USD"
}
resource "sandboxer_sandbox" "b" {
  profile = "profile.stub"
  name    = "b"
  ttl     = terraform_data.ttl.output
  inputs  = terraform_data.inputs.output
}
`)
	}
	both := func(a, bb plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(addr, a),
			plancheck.ExpectResourceAction("sandboxer_sandbox.b", bb)}}
	}
	b.run(
		resource.TestStep{Config: cfg("x", "1h"), ConfigPlanChecks: both(plancheck.ResourceActionCreate, plancheck.ResourceActionCreate)},
		resource.TestStep{Config: cfg("x", "60m"), ConfigPlanChecks: both(plancheck.ResourceActionUpdate, plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: cfg("x", "2h"), ConfigPlanChecks: both(plancheck.ResourceActionUpdate, plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: cfg("yy", "2h"), ConfigPlanChecks: both(plancheck.ResourceActionReplace, plancheck.ResourceActionNoop)},
	)
}

// A host of the sandbox that is not known in the plan counts as another one.
func TestAnUnknownHostReplacesUnlessTheOwnOneIsKnown(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	cfg := func(region, hosts string) string {
		return b.config(hostHCL + `
resource "terraform_data" "region" {
  input            = "` + region + `"
  triggers_replace = "` + region + `"
}
resource "sandboxer_host" "other" {
  name   = "other"
  local  = true
  region = terraform_data.region.output
}
resource "sandboxer_sandbox" "a" {
  profile = "profile.quickstart"
  ttl     = "30m"
  hosts   = [` + hosts + `]
}
`)
	}
	b.run(
		resource.TestStep{Config: cfg("eu", "sandboxer_host.other.ref")},
		resource.TestStep{Config: cfg("us", "sandboxer_host.other.ref"), ConfigPlanChecks: action(plancheck.ResourceActionReplace)},
		resource.TestStep{Config: cfg("us", "sandboxer_host.here.ref"), ConfigPlanChecks: action(plancheck.ResourceActionReplace)},
		resource.TestStep{Config: cfg("eu", "sandboxer_host.here.ref, sandboxer_host.other.ref"),
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
	)
}

func TestAnExpiredAndKeptSandboxTakesStateOnlyChanges(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	on := b.config(sandboxHCL("on_expiry = \"keep\"\ndeletion_protection = true"))
	off := b.config(sandboxHCL("on_expiry = \"keep\""))
	b.run(
		resource.TestStep{Config: on},
		resource.TestStep{PreConfig: func() { b.expire(2 * time.Hour) }, Config: off, ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: b.config(sandboxHCL("")), ConfigPlanChecks: action(plancheck.ResourceActionReplace)},
	)
}

func TestAFailedSandboxIsReplacedAlthoughProtected(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL("name = \"ill\"\ndeletion_protection = true"))
	b.run(
		resource.TestStep{Config: cfg},
		resource.TestStep{PreConfig: func() {
			if err := b.vendor().Fail(string(b.only().ID), "the disk broke"); err != nil {
				t.Fatal(err)
			}
		}, Config: cfg, ConfigPlanChecks: action(plancheck.ResourceActionReplace)},
		resource.TestStep{Config: b.config(sandboxHCL(`name = "ill"`))},
	)
}

func TestAHalfMadeSandboxCanGoAlthoughProtected(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config(sandboxHCL("name = \"half\"\ndeletion_protection = true"))
	b.run(
		resource.TestStep{PreConfig: func() {
			b.script(vendor.Rule{Op: vendor.OpStart, Do: vendor.DoFailReady}, vendor.Rule{Op: vendor.OpDelete, Do: vendor.DoUnauthorized})
		}, Config: cfg, ExpectError: regexp.MustCompile(`was not created`)},
		resource.TestStep{PreConfig: func() { b.script() }, Config: cfg, Destroy: true},
	)
}

func TestAnUnreachableSandboxIsForgottenOnRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL("name = \"gone\"\non_unreachable_destroy = \"forget\""))
	c.apply()
	b.script(vendor.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
	if out := c.destroy("-refresh=false"); !regexp.MustCompile(`(?i)forgotten`).MatchString(out) {
		t.Errorf("no warning:\n%s", out)
	}
	b.script()
	if sb := b.only(); sb.State != stateFailed {
		t.Errorf("the ledger has it as %s", sb.State)
	}
}

func TestAnUnreachableSandboxFailsTheDestroyAndStays(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "stays"`))
	c.apply()
	b.script(vendor.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
	if out, code := c.try(nil, "destroy", "-auto-approve", "-no-color", "-refresh=false"); code == 0 {
		t.Fatalf("the destroy succeeded:\n%s", out)
	}
	b.script()
	if c.stateOf(addr, "id") == nil {
		t.Error("the state lost it")
	}
	c.destroy()
	c.nothingLeft()
}

func TestAProviderBlockThatIsKnownOnlyInApply(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := func(ttl string) string {
		return replaced(b.config(""), `"acme/web"`, "terraform_data.account.output") +
			"resource \"terraform_data\" \"account\" {\n  input = \"acme/web\"\n}\n" + sandboxHCL(`ttl = "`+ttl+`"`)
	}
	b.run(
		resource.TestStep{Config: cfg("1h"), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
			plancheck.ExpectUnknownValue(addr, tfjsonpath.New("account")), plancheck.ExpectUnknownValue(addr, tfjsonpath.New("estimate"))}},
			ConfigStateChecks: []statecheck.StateCheck{value("account", knownvalue.StringExact("acme/web"))}},
		resource.TestStep{Config: cfg("2h"), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
	)
}
