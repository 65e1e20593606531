package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A catalog can name a program, and only the provider's own block lets it run.
func TestAnExtensionInAnotherLanguageIsAppliedOnceItIsAllowed(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	c := newCLI(t, b)
	text, err := os.ReadFile("../../examples/extensions/shell/sandbox.sh")
	if err != nil {
		t.Fatal(err)
	}
	program := b.write("sandbox.sh", strings.Replace(string(text), "\n", "\n: >>\"${0%/*}/ran\"\n", 1))
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	b.write("catalog/extensions/ext.mine.yaml", "id: ext.mine\ntitle: Mine\nhandler: command\nconfig:\n  command: "+program+
		"\n  manifest: { contract: 1, isolation_levels: [none], find: strong, expiry: host }\n")
	b.profile("profile.mine", "extends: profile.base\nextension: ext.mine\nisolation: { level: none }\nnetwork: { default: allow }\n"+
		"workspace: { access: none }\n")
	body := "resource \"sandboxer_sandbox\" \"s\" {\n  profile = \"profile.mine\"\n  name    = \"one\"\n}\n"
	ran := filepath.Join(b.root, "ran")
	c.write(body)
	out, code := c.try(nil, "plan", "-no-color")
	flat := strings.Join(strings.Fields(strings.ReplaceAll(out, "│", " ")), " ")
	if code == 0 || !strings.Contains(flat, "sandbox.sh, which is not allowed") || !strings.Contains(flat, "allowed_commands") {
		t.Errorf("plan without leave: exit %d\n%s", code, out)
	}
	c.write(body)
	main := filepath.Join(c.dir, "main.tf")
	config, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Replace(string(config), "  account ", fmt.Sprintf("  allowed_commands = [%q]\n  account ", program), 1)
	if err := os.WriteFile(main, []byte(allowed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := c.try(nil, "plan", "-no-color"); code != 0 {
		t.Errorf("plan: exit %d\n%s", code, out)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the plan ran the program")
	}
	c.apply()
	c.planIsEmpty()
	c.destroy()
	if _, err := os.Stat(ran); err != nil {
		t.Errorf("the program did not run: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(b.state, "command", "ext.mine", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
