package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// The guide "Bring a host", from its first apply to its end.
func TestTheGuideOfAHostIsFollowed(t *testing.T) {
	s, image := requireHost(t)
	c := example(t, "bring-a-host")
	before := hosttest.Snapshot(t, s.HomeDir)
	c.replaceIn("sandbox.tf", "busybox:1.36", image)
	raw, err := os.ReadFile(filepath.Join(c.dir, "host.tf"))
	if err != nil {
		t.Fatal(err)
	}
	c.add("host.tf", atHost(t, string(raw), s))
	c.apply()
	c.planIsEmpty()
	first := c.stateOf("sandboxer_sandbox.stack", "id")

	inside := func(args ...string) string {
		cmd := c.sandboxerCommand(args...)
		cmd.Env = append(cmd.Env, "SANDBOXER_ACCOUNT=", "SANDBOXER_CATALOG=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("sandboxer %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := inside("host", "check", "build"); !strings.Contains(out, "isolation   container") {
		t.Errorf("the host's facts: %s", out)
	}
	if out := inside("sandbox", "exec", "--service", "web", "first", "--", "wget", "-q", "-O", "-",
		"http://localhost:8080/"); out != "hello\n" {
		t.Errorf("the page is %q", out)
	}
	if out := inside("sandbox", "logs", "first", "--service", "web"); !strings.Contains(out, "response:200") {
		t.Errorf("the log of web is %q", out)
	}
	c.replaceIn("stack/compose.yaml", "echo hello", "echo changed")
	c.apply()
	if second := c.stateOf("sandboxer_sandbox.stack", "id"); second == first {
		t.Error("a change of the stack's files made no new stack")
	}
	c.destroy()
	c.ownsNothing()
	leavesNothing(t, s, before, s.HomeDir)
}
