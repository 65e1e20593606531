package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// What an agent made from nothing, in an image of the request's, is there after
// the end.
func TestAnAgentStartsFromNothingAndItsWorkIsKept(t *testing.T) {
	t.Parallel()
	s, image := requireHost(t)
	b := newBed(t)
	within := []string{"acme/agents" + filepath.Base(s.HomeDir), s.HomeDir}
	before := hosttest.Snapshot(t, within...)
	c := newCLI(t, b)
	c.write(sshHost(s, "") + fmt.Sprintf(`
resource "sandboxer_sandbox" "s" {
  profile = "profile.agent-dev"
  name    = "agent"
  hosts   = [sandboxer_host.far.ref]
  inputs  = { image = %q }
}
`, image))
	c.apply()
	c.planIsEmpty()
	sb := b.only()
	res, err := b.engine().Exec(context.Background(), sb.Receipt, engine.ExecRequest{Shell: "echo done >work.txt"})
	if err != nil || res.ExitCode != 0 {
		t.Errorf("exec: %+v, %v", res, err)
	}
	c.destroy()
	raw, err := os.ReadFile(filepath.Join(b.state, "kept", string(sb.ID), "work.txt"))
	if err != nil || string(raw) != "done\n" {
		t.Errorf("the work is %q (%v)", raw, err)
	}
	leavesNothing(t, s, before, within...)
}
