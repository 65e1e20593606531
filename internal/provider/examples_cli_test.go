package provider

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

const examples = "../../examples"

// example copies one example into a folder of its own, where it is run as a user would: no provider argument, the state
// folder from the environment. Where it names no file beside it, its provider is one of this process, which takes half the
// time, and knows neither the folder nor the environment of a command.
func example(t *testing.T, name string) *cli {
	t.Helper()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	c := newCLI(t, b)
	if err := os.CopyFS(c.dir, os.DirFS(filepath.Join(examples, name))); err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env, "SANDBOXER_STATE_DIR="+b.state, "SANDBOXER_LEDGER=", "SANDBOXER_CATALOG=", "SANDBOXER_ACCOUNT=")
	for _, f := range []string{"import-by-string-id.tf", "identity-import.tf", "ssh.tf"} {
		if err := os.RemoveAll(filepath.Join(c.dir, f)); err != nil { // applied by a test of their own
			t.Fatal(err)
		}
	}
	text := c.allText()
	if !strings.Contains(text, "required_providers") {
		c.add("providers.tf", "terraform {\n  required_providers {\n    sandboxer = { source = \"sand-boxer/sandboxer\" }\n  }\n}\n")
	}
	if strings.Contains(text, "\"./") || strings.Contains(text, "path.module") {
		c.built = builtProvider
		return c
	}
	file := "provider.tf"
	if strings.Contains(text, "provider \"sandboxer\"") {
		file = "override.tf"
	}
	c.add(file, "provider \"sandboxer\" {\n  state_dir = "+strconv.Quote(b.state)+"\n}\n")
	return c
}

func (c *cli) allText() string {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, "*.tf"))
	if err != nil || len(files) == 0 {
		c.t.Fatalf("no configuration in %s (%v)", c.dir, err)
	}
	var all strings.Builder
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			c.t.Fatal(err)
		}
		all.Write(raw)
	}
	return all.String()
}

func (c *cli) add(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// owned is the engine of the user who runs the example.
func (c *cli) owned() *engine.Engine {
	c.t.Helper()
	e, err := engine.New(engine.Options{Extensions: testExtensions(), StateDir: c.b.state})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = e.Close() })
	return e
}

func (c *cli) ownsNothing() {
	c.t.Helper()
	left, err := c.owned().List(context.Background(), false)
	if err != nil || len(left) > 0 {
		c.t.Errorf("left: %v (%v)", left, err)
	}
}

// appliedExamples are those that need nothing but this machine, and nothing done between apply and destroy.
var appliedExamples = []string{"provider", "quickstart", "resources/sandboxer_host", "resources/sandboxer_sandbox",
	"resources/sandboxer_snapshot", "resources/sandboxer_exec", "data-sources/sandboxer_quote", "data-sources/sandboxer_account",
	"data-sources/sandboxer_usage", "data-sources/sandboxer_profile", "data-sources/sandboxer_extensions",
	"data-sources/sandboxer_sandboxes", "functions/duration", "functions/profile", "idle"}

func TestEveryExampleIsApplied(t *testing.T) {
	t.Parallel()
	for _, name := range appliedExamples {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			c := example(t, name)
			if name == "provider" { // a provider alone configures nothing
				c.add("use.tf", "resource \"sandboxer_sandbox\" \"s\" {\n  profile = \"profile.scratch\"\n}\n")
			}
			c.apply()
			c.planIsEmpty()
			c.destroy()
			c.ownsNothing()
		})
	}
}

// The plan of the ten tells of each what it costs, and of those that are too dear
// the arithmetic; it leaves nothing behind.
func TestTheTenSandboxesExampleIsPlanned(t *testing.T) {
	t.Parallel()
	c := example(t, "ten-sandboxes")
	out := c.must("plan", "-no-color")
	for line, times := range map[string]int{
		`Plan: 11 to add`: 1,
		`summary    = "0.00 USD an hour, at most 0.00 USD for 1h"`:          3,
		`summary    = "0.117 USD an hour, at most 0.235 USD for 2h"`:        5,
		`summary    = "0.0694609 USD an hour, at most 0.138922 USD for 2h"`: 2,
	} {
		if n := strings.Count(out, line); n != times {
			t.Errorf("%d times instead of %d: %s\n%s", n, times, line, out)
		}
	}
	out, code := c.try(nil, "plan", "-no-color", "-var=most=0.20")
	if flat := strings.Join(strings.Fields(out), " "); code == 0 || !strings.Contains(flat, "0.035 USD above max_cost 0.20 USD") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if _, err := os.Stat(c.b.state); !os.IsNotExist(err) {
		t.Errorf("a plan wrote into the state folder: %v", err)
	}
}

// The budget example makes its sandbox while there is room to spare, warns when
// a budget is nearly spent, and refuses when there is no room.
func TestTheBudgetExampleKeepsSomethingToSpare(t *testing.T) {
	t.Parallel()
	c := example(t, "budget")
	limit := func(amount string) {
		t.Helper()
		e := c.owned()
		if _, err := e.SetBudget(context.Background(), engine.BudgetSpec{Name: "month", Limit: amount, Period: "month"}); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	flat := func(out string) string {
		return strings.Join(strings.FieldsFunc(out, func(r rune) bool { return r <= ' ' || r == '│' }), " ")
	}
	limit("1.20 USD")
	if out, code := c.try(nil, "plan", "-no-color"); code == 0 ||
		!strings.Contains(flat(out), "A budget would keep less than 1 USD after the 0.235 USD") {
		t.Errorf("exit %d\n%s", code, out)
	}
	limit("5 USD")
	c.apply()
	c.planIsEmpty()
	if out := c.must("plan", "-no-color", "-var=spare=0"); strings.Contains(flat(out), "Less than a tenth") {
		t.Error(out)
	}
	limit("0.25 USD")
	if out := c.must("plan", "-no-color", "-var=spare=-1"); !strings.Contains(flat(out), "Less than a tenth is left in: month of") {
		t.Error(out)
	}
	limit("5 USD")
	c.destroy()
	c.ownsNothing()
}

// Every folder under examples is known to a test: a new one must be added.
func TestNoExampleIsForgotten(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"toolchain": true, "e2e-terraform-test": true, "compose-e2e": true, "bring-a-host": true, "ten-sandboxes": true,
		"budget": true, "inputs": true, "container": true, "agent": true, "generator": true}
	for _, name := range appliedExamples {
		known[name] = true
	}
	for _, pattern := range []string{"*", "resources/*", "data-sources/*", "functions/*"} {
		dirs, err := filepath.Glob(filepath.Join(examples, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dirs {
			name, _ := filepath.Rel(examples, d)
			if files, _ := filepath.Glob(filepath.Join(d, "*.tf")); len(files) > 0 && !known[name] {
				t.Errorf("no test applies examples/%s", name)
			}
		}
	}
}

func TestTheImportExamplesImport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ address, placeholder string }{
		"sandboxer_host":     {"sandboxer_host.here", ""},
		"sandboxer_sandbox":  {"sandboxer_sandbox.app", "sbx-aaaaaaaaaaaaaaaaaaaa"},
		"sandboxer_snapshot": {"sandboxer_snapshot.seeded", "snp-aaaaaaaaaaaaaaaaaaaa"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl := example(t, "resources/"+name)
			cl.apply()
			id, _ := cl.stateOf(c.address, "id").(string)
			real := func(text string) string {
				if c.placeholder == "" {
					return text
				}
				return strings.ReplaceAll(text, c.placeholder, id)
			}
			raw, err := os.ReadFile(filepath.Join(examples, "resources", name, "import.sh"))
			if err != nil {
				t.Fatal(err)
			}
			commands := regexp.MustCompile(`(?m)^terraform (import .*)$`).FindAllStringSubmatch(string(raw), -1)
			if len(commands) == 0 {
				t.Fatal("import.sh has no command")
			}
			for _, m := range commands {
				cl.must("state", "rm", c.address)
				cl.must(strings.Fields(real(m[1]))...)
			}
			for _, block := range []string{"import-by-string-id.tf", "identity-import.tf"} {
				raw, err := os.ReadFile(filepath.Join(examples, "resources", name, block))
				if os.IsNotExist(err) || strings.Contains(block, "identity") && cl.before("1.12") {
					continue
				}
				cl.must("state", "rm", c.address)
				cl.add(block, real(string(raw)))
				cl.apply()
				if err := os.Remove(filepath.Join(cl.dir, block)); err != nil {
					t.Fatal(err)
				}
			}
			cl.apply() // a snapshot takes its triggers from the configuration
			if now, _ := cl.stateOf(c.address, "id").(string); now != id {
				t.Errorf("the import of %s ended with %s", id, now)
			}
			cl.planIsEmpty()
			cl.destroy()
			cl.ownsNothing()
		})
	}
}

// before reports an older Terraform than the version, such as "1.12".
func (c *cli) before(version string) bool {
	c.t.Helper()
	var v struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal([]byte(c.must("version", "-json")), &v); err != nil {
		c.t.Fatal(err)
	}
	have, want := strings.Split(v.Version, "."), strings.Split(version, ".")
	return len(have[1]) < len(want[1]) || len(have[1]) == len(want[1]) && have[1] < want[1]
}

func TestTheEndToEndExamplePassesTerraformTest(t *testing.T) {
	t.Parallel()
	c := example(t, "e2e-terraform-test")
	out, code := c.try(nil, "test", "-no-color")
	if code != 0 || !strings.Contains(out, "3 passed, 0 failed") {
		t.Errorf("exit %d\n%s", code, out)
	}
	c.ownsNothing()
	broken := strings.NewReplacer("tr '[:lower:]' '[:upper:]' <\"$job\"", "cat \"$job\"")
	raw, err := os.ReadFile(filepath.Join(c.dir, "stack/worker.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "stack/worker.sh"), []byte(broken.Replace(string(raw))), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code = c.try(nil, "test", "-no-color")
	if code == 0 || !strings.Contains(flat(out), "got 'job 1") {
		t.Errorf("a broken stack passed: exit %d\n%s", code, out)
	}
	c.ownsNothing()
}
