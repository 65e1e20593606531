package provider

import (
	"context"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

const hostHCL = `
resource "sandboxer_host" "here" {
  name     = "here"
  local    = true
  region   = "eu"
  labels   = { pool = "e2e" }
  priority = 10
  capacity = { max_sandboxes = 20 }
  cost     = { per_hour = "0.40 USD", cpu = 16, memory_mb = 65536 }
}
`

func TestAHostIsRegisteredImportedAndForgotten(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	const host = "sandboxer_host.here"
	b.run(
		resource.TestStep{Config: b.config(hostHCL),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectKnownValue(host, tfjsonpath.New("ref"), knownvalue.StringRegexp(regexp.MustCompile(`^host://here\?v=1&d=[\w-]+$`)))}},
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(host, tfjsonpath.New("facts").AtMapKey("os"),
				knownvalue.NotNull())}},
		resource.TestStep{ResourceName: host, ImportState: true, ImportStateId: "here", ImportStateVerify: true,
			ImportStateVerifyIdentifierAttribute: "name"},
	)
}

// A name of a host is one host's: a second state can register it as it is, and
// not turn it into another, which sandboxes of the first would then be looked for on.
func TestASecondStateDoesNotSwitchAHost(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	first, second := newCLI(t, b), newCLI(t, b)
	first.write(hostHCL)
	first.apply()
	second.write(replaced(hostHCL, "priority = 10", "priority = 99"))
	if out := second.must("plan", "-no-color", "-input=false"); !says(out, "as this machine") {
		t.Errorf("the plan does not tell:\n%s", out)
	}
	out, code := second.try(nil, "apply", "-auto-approve", "-no-color", "-input=false")
	if code == 0 || !says(out, `host "here"`, "as this machine", "different now: priority", "terraform import") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	second.write(hostHCL)
	for _, verb := range []string{"plan", "apply"} {
		out := second.must(append([]string{verb, "-no-color", "-input=false"}, map[string][]string{"apply": {"-auto-approve"}}[verb]...)...)
		if !says(out, `Host "here" is registered twice`, "with the same arguments", `hosts = ["here"]`) {
			t.Errorf("the %s does not tell:\n%s", verb, out)
		}
	}
	for _, args := range [][]string{{"plan"}, {"plan", "-replace=sandboxer_host.here"},
		{"plan", "-refresh=false", "-replace=sandboxer_host.here"}, {"apply", "-auto-approve", "-replace=sandboxer_host.here"}} {
		if out := second.must(append(args, "-no-color", "-input=false")...); says(out, "registered twice") {
			t.Errorf("%v calls the state's own host another's:\n%s", args, out)
		}
	}
	second.write(replaced(hostHCL, "priority = 10", "priority = 99"))
	second.apply() // it is this state's too, and the change is told to it alone
	if h, err := b.engine().LookupHost(context.Background(), "here"); err != nil || h.Priority != 99 {
		t.Errorf("priority %d, %v", h.Priority, err)
	}
	if out := first.must("plan", "-no-color", "-input=false"); !says(out, `host "here" is a different host in the ledger`,
		"different now: priority") {
		t.Errorf("the first state is not told:\n%s", out)
	}
	first.write("")
	first.apply() // what it would remove is not what it registered
	if _, err := b.engine().LookupHost(context.Background(), "here"); err != nil {
		t.Error(err)
	}
	second.destroy()
}

func TestHostsChangeWithTheirSandboxesInOneApply(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	sandbox := "resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.quickstart\"\n  name = \"on-host\"\n  ttl = \"30m\"\n  hosts " +
		"= [%s]\n}\n"
	one := replaced(sandbox, "%s", "sandboxer_host.here.ref")
	second := replaced(replaced(hostHCL, `"here"`, `"there"`), `"there" {`, `"there" {`)
	both := replaced(sandbox, "%s", "sandboxer_host.there.ref, sandboxer_host.here.ref")
	moved := replaced(sandbox, "%s", "sandboxer_host.there.ref")
	b.run(
		resource.TestStep{Config: b.config(hostHCL + one), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
			plancheck.ExpectKnownValue(addr, tfjsonpath.New("extension"), knownvalue.StringExact("ext.local")),
			plancheck.ExpectKnownValue(addr, tfjsonpath.New("estimate").AtMapKey("summary"), knownvalue.NotNull())}}},
		resource.TestStep{Config: b.config(replaced(hostHCL, "priority = 10", "priority = 20") + one),
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: b.config(hostHCL + second + both), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: b.config(second + moved), ConfigPlanChecks: action(plancheck.ResourceActionReplace)},
		resource.TestStep{Config: b.config(replaced(second, "0.40 USD", "0.80 USD") + moved),
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
	)
}

func TestTheArgumentsOfAHostOverSSHAreChecked(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	ssh := func(body string) string { return "  ssh = {" + body + "}\n" }
	for _, host := range []struct{ body, want string }{
		{ssh(`user = "sandbox"`), `address and alias`},
		{ssh(`address = "a", alias = "b"`), `address and alias`},
		{ssh(`address = "a", jump = [{}]`), `address and alias`},
		{ssh(`address = "-oProxyCommand=x"`), `not an address`},
		{ssh(`address = "a", port = 70000`), `65535`},
		{ssh(`address = "a", user = "-root"`), `cannot be a user`},
		{ssh(`address = "a", host_key = "ssh-ed25519 AAAA\nssh-rsa B"`), `line break`},
		{"", `needs local or ssh`},
		{"  local = true\n" + ssh(`address = "a"`), `local conflicts with ssh`},
	} {
		c.write("resource \"sandboxer_host\" \"far\" {\n  name = \"far\"\n" + host.body + "}\n")
		refused(t, c, host.want)
	}
}

// Where the place comes from the ledger the estimate is no part of the plan.
func TestAPlaceFromTheLedgerLeavesTheEstimateUnknown(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	b.profile("profile.placed", "extends: profile.quickstart\nplacement: { prefer: [here] }\n")
	cfg := func(body string) string {
		return b.config(hostHCL + "resource \"sandboxer_sandbox\" \"a\" {\n  depends_on = [sandboxer_host.here]\n  ttl = \"30m\"\n" + body +
			"\n}\n")
	}
	unknown := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectUnknownValue(addr, tfjsonpath.New("estimate"))}}
	onHere := []statecheck.StateCheck{
		value("host", knownvalue.StringRegexp(regexp.MustCompile(`^host://here\?v=1&d=[\w-]+$`))),
		statecheck.ExpectKnownValue(addr, tfjsonpath.New("estimate").AtMapKey("maximum"), knownvalue.NotNull())}
	b.run(
		resource.TestStep{Config: b.config(hostHCL)},
		resource.TestStep{Config: cfg(`profile = "profile.placed"`), ConfigPlanChecks: unknown, ConfigStateChecks: onHere},
		resource.TestStep{Config: cfg("profile = \"profile.quickstart\"\nhosts = [\"here\"]"), ConfigPlanChecks: unknown,
			ConfigStateChecks: onHere},
	)
}

func TestAHostInUseIsNotRemovedUnlessForced(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	b.run(
		resource.TestStep{Config: b.config(hostHCL)},
		resource.TestStep{PreConfig: func() {
			e := b.engine()
			h, err := e.LookupHost(context.Background(), "here")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Create(context.Background(),
				engine.Request{Profile: "profile.quickstart", Name: "tenant", TTL: "30m", Hosts: []string{h.Ref()}}, nil, nil); err != nil {
				t.Fatal(err)
			}
		}, Config: b.config(hostHCL), Destroy: true, ExpectError: regexp.MustCompile(`tenant`)},
		resource.TestStep{Config: b.config(replaced(hostHCL, "local    = true", "local = true\n force_destroy = true"))},
		resource.TestStep{PreConfig: func() {
			if _, err := b.engine().Destroy(context.Background(), b.only().Receipt, engine.DestroyOptions{}); err != nil {
				t.Fatal(err)
			}
		}, Config: b.config(hostHCL)},
	)
}

// A sandbox that is adopted may live elsewhere than a new one would.
func TestAnAdoptedSandboxKeepsItsPlace(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	other := engine.Host{Name: "other", Local: true}
	made, err := b.engine().Create(context.Background(),
		engine.Request{Profile: "profile.quickstart", Name: "found", TTL: "30m", Hosts: []string{other.Ref()}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.config(hostHCL + "resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.quickstart\"\n  name = \"found\"\n  ttl = " +
		"\"30m\"\n  hosts = [sandboxer_host.here.ref]\n  on_conflict = \"adopt\"\n}\n")
	b.run(
		resource.TestStep{Config: cfg, ConfigStateChecks: []statecheck.StateCheck{
			value("id", knownvalue.StringExact(string(made.ID))), value("host", knownvalue.StringExact(other.Ref()))}},
	)
}
