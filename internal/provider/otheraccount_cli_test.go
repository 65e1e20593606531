package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// forAccount changes the account of the provider block that write wrote.
func (c *cli) forAccount(name string) {
	c.t.Helper()
	file := filepath.Join(c.dir, "main.tf")
	raw, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(raw), `"acme/web"`, `"`+name+`"`, 1)), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// A sandbox stays with the account that it was made for: the plan tells, and a
// later end is paid for, and refused, by that account.
func TestASandboxStaysWithItsAccount(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	body := func(more string) string {
		return sandboxHCL("name = \"one\"\nbilling = \"platform\"\n"+more) +
			"resource \"sandboxer_snapshot\" \"s\" {\n  sandbox_id = sandboxer_sandbox.a.id\n  retention = \"30d\"\n}\n"
	}
	if out, code := c.sandboxer("ledger", "grant", "acme", "0.30 USD"); code != 0 {
		t.Fatal(out)
	}
	c.write(body("ttl = \"1h\""))
	c.apply()
	c.planIsEmpty()

	c.forAccount("poor/else")
	c.planIsEmpty()
	out := c.must("plan", "-no-color", "-input=false")
	if !says(out, "No changes", "Resources of account acme/web stay in it", "the provider's account is poor/else", "-replace=ADDRESS") ||
		says(out, "0.00 available") {
		t.Errorf("the plan:\n%s", out)
	}
	c.write(body("ttl = \"2h\""))
	c.forAccount("poor/else")
	if out := c.apply(); !says(out, "0 added, 1 changed, 0 destroyed", "stay in it") || says(out, "0.00 available") {
		t.Errorf("a later end:\n%s", out)
	}
	c.write(body("ttl = \"20h\""))
	c.forAccount("poor/else")
	if out, code := c.try(nil, "plan", "-no-color", "-input=false"); code == 0 || !says(out, "limit: wallet of acme") ||
		says(out, "0.00 available", "wallet of poor") {
		t.Errorf("an end that is not affordable: exit %d\n%s", code, out)
	}
	if got := c.stateOf("sandboxer_sandbox.a", "account"); got != "acme/web" {
		t.Errorf("account %v", got)
	}

	c.write(body("ttl = \"2h\"\ntriggers = { a = \"1\" }")) // made anew, it is the other account's, which has no money
	c.forAccount("poor/else")
	if out, code := c.try(nil, "plan", "-no-color", "-input=false"); code == 0 || !says(out, "it cannot be paid for", "wallet of poor") {
		t.Errorf("made anew: exit %d\n%s", code, out)
	}
	if out, code := c.sandboxer("ledger", "grant", "poor", "1 USD"); code != 0 {
		t.Fatal(out)
	}
	if out := c.apply(); says(out, "Resources of account acme/web stay in it\n\n  with sandboxer_sandbox") {
		t.Errorf("made anew:\n%s", out)
	}
	if got := c.stateOf("sandboxer_sandbox.a", "account"); got != "poor/else" {
		t.Errorf("account %v", got)
	}
	c.destroy()
	c.nothingLeft()
}

// A key of another account of the vendor finds nothing. Neither a refresh nor a destroy takes that for gone; a new key of the same
// account works.
func TestAKeyOfAnotherAccountLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	dir := filepath.Join(b.state, saasstub.Handler)
	teams := saasstub.Script{Teams: map[string]string{"key-mine": "one", "key-rotated": "one", "key-other": "two"}}
	if err := saasstub.WriteScript(dir, teams); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.script() }) // before the rest is ended
	c := newCLI(t, b)
	with := func(key string, args ...string) (string, int) {
		return c.try([]string{"SAAS_STUB_API_KEY=" + key}, append(args, "-no-color", "-input=false")...)
	}
	c.write(sandboxHCL(`name = "one"`) + "resource \"sandboxer_snapshot\" \"s\" {\n  sandbox_id = sandboxer_sandbox.a.id\n}\n")
	if out, code := with("key-mine", "apply", "-auto-approve"); code != 0 {
		t.Fatal(out)
	}
	for _, args := range [][]string{{"plan"}, {"apply", "-auto-approve"}, {"apply", "-refresh-only", "-auto-approve"},
		{"destroy", "-auto-approve"}, {"destroy", "-auto-approve", "-refresh=false"}} {
		out, code := with("key-other", args...)
		if code == 0 || !says(out, "another one created it", "use the credential that it was created with") || says(out, "was lost") {
			t.Errorf("terraform %v: exit %d\n%s", args, code, out)
		}
	}
	if c.stateOf("sandboxer_sandbox.a", "id") == nil || c.stateOf("sandboxer_snapshot.s", "id") == nil {
		t.Error("the state has lost them")
	}
	if out, code := with("key-rotated", "plan"); code != 0 || !says(out, "No changes") {
		t.Errorf("a new key of the account: exit %d\n%s", code, out)
	}
	if out, code := with("key-mine", "destroy", "-auto-approve"); code != 0 || !says(out, "2 destroyed") {
		t.Errorf("exit %d\n%s", code, out)
	}
	b.script()
	c.nothingLeft()
}
