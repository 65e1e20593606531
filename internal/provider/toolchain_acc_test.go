package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func TestTheToolchainExampleIsApplied(t *testing.T) {
	t.Parallel()
	c := example(t, "toolchain")
	c.apply()
	c.planIsEmpty()
	c.destroy()
	c.ownsNothing()
	raw, err := os.ReadFile(filepath.Join(c.dir, "app", "report.txt"))
	if err != nil || strings.Join(strings.Fields(string(raw)), " ") != "there were 7 words" {
		t.Errorf("the report of the end is %q (%v)", raw, err)
	}
}

func TestAFailingCommandIsToldWithItsOutputAndLeavesNothing(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	c := newCLI(t, b)
	b.profile("profile.fails", "extends: profile.quickstart\ntoolchain: { install: [\"echo the cause; exit 5\"] }\n")
	c.write("resource \"sandboxer_sandbox\" \"s\" {\n  profile = \"profile.fails\"\n  name    = \"one\"\n}\n")
	if out, code := c.try(nil, "plan", "-no-color"); code != 0 {
		t.Fatalf("plan: exit %d\n%s", code, out)
	}
	out, code := c.try(nil, "apply", "-auto-approve", "-no-color")
	flat := strings.Join(strings.Fields(strings.ReplaceAll(out, "│", " ")), " ")
	if code == 0 || !strings.Contains(flat, "toolchain.install 1 of 1") || !strings.Contains(flat, "exit code 5") ||
		!strings.Contains(flat, "the cause") {
		t.Errorf("apply: exit %d\n%s", code, out)
	}
	c.nothingLeft()
	if raw, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate")); err == nil && strings.Contains(string(raw), "the cause") {
		t.Errorf("the output is in the state: %s", raw)
	}
	// A command that is mended makes the next apply succeed.
	b.profile("profile.fails", "extends: profile.quickstart\ntoolchain: { install: [\"echo mended\"], pre_release: [\"echo too late; exit "+
		"6\"] }\n")
	c.apply()
	out, code = c.try(nil, "destroy", "-auto-approve", "-no-color")
	if flat := strings.Join(strings.Fields(strings.ReplaceAll(out, "│", " ")), " "); code != 0 ||
		!strings.Contains(flat, "pre_release command failed") || !strings.Contains(flat, "exit code 6") {
		t.Errorf("destroy: exit %d\n%s", code, out)
	}
	c.nothingLeft()
}

func TestAToolchainRunsInTheServiceOfAStack(t *testing.T) {
	t.Parallel()
	s, image := requireHost(t)
	b := newBed(t)
	b.write("catalog/kits/kit.tool.yaml", "id: kit.tool\nversion: \"1.0.0\"\ninstall: [\"mkdir -p /tmp/kit && printf '#!/bin/sh\\\\necho "+
		"tooled\\\\n' >/tmp/kit/tool && chmod +x /tmp/kit/tool\"]\nenv: { BY_KIT: \"yes\", PATH: \"${PATH}:/tmp/kit\" }\n")
	b.stack(image, stackYAML)
	b.profile("profile.stack", stackProfile+`
workspace: { mode: mirror, access: rw }
toolchain:
  kits: [tool]
  post_acquire: ["tool >out; echo $BY_KIT $TOKEN >>out; pwd >>out"]
  pre_release: ["tool >released"]
readiness: { command: [tool], timeout: 20s }
`)
	within := []string{"acme/tools" + filepath.Base(s.HomeDir), s.HomeDir}
	before := hosttest.Snapshot(t, within...)
	c := newCLI(t, b)
	repo := b.write("app/seed", "x\n")
	c.write(sshHost(s, "") + `
resource "sandboxer_sandbox" "s" {
  profile            = "profile.stack"
  name               = "tooled"
  hosts              = [sandboxer_host.far.ref]
  inputs             = { repo = "` + filepath.Dir(repo) + `" }
  secrets_wo         = { TOKEN = "hush-hush" }
  secrets_wo_version = 1
}
`)
	c.account(within[0])
	c.apply()
	c.planIsEmpty()
	c.destroy()
	if raw, err := os.ReadFile(filepath.Join(filepath.Dir(repo), "out")); err != nil ||
		!strings.HasPrefix(string(raw), "tooled\nyes hush-hush\n/") {
		t.Errorf("post_acquire left %q (%v)", raw, err)
	}
	if raw, err := os.ReadFile(filepath.Join(filepath.Dir(repo), "released")); err != nil || string(raw) != "tooled\n" {
		t.Errorf("pre_release left %q (%v)", raw, err)
	}
	leavesNothing(t, s, before, within...)
}
