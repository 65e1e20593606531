package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// The design's own profile, as it is written there, on a host behind a jump
// host, with keys that a command prints; and its end by a machine that has
// neither the catalog nor the ledger.
func TestTheSampleProfileRunsBehindItsTunnelAndEndsElsewhere(t *testing.T) {
	t.Parallel()
	host, image := requireHost(t)
	bridge := hosttest.SSHD(t)
	b := newBed(t)
	sample, err := os.ReadFile("../engine/testdata/sample/profiles/profile.compose-e2e.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.write("catalog/profiles/sample.yaml", string(sample))
	b.write("catalog/tunnels/ops-bridge.yaml",
		fmt.Sprintf("id: ops-bridge\naddress: %s\nport: %d\nuser: %s\nhost_key: %q\nidentity: ops-warden\n",
			bridge.Address, bridge.Port, bridge.User, bridge.HostKeyLine))
	b.write("catalog/identities/ops-warden.yaml", fmt.Sprintf("id: ops-warden\ncommand: [cat, %q]\n", host.KeyFile))
	b.write("catalog/extensions/ext.compose-ssh.yaml", "id: ext.compose-ssh\nhandler: compose-ssh\nconfig: { default_image: "+image+" }\n")
	c := newCLI(t, b)
	host01 := func(way string) string {
		return fmt.Sprintf(`
resource "sandboxer_host" "one" {
  name = "sandboxer01"
  ssh  = { address = %q, port = %d, user = %q, host_key = %q, %s }
}
`, host.Address, host.Port, host.User, host.HostKeyLine, way)
	}
	sandbox := `
resource "sandboxer_sandbox" "a" {
  profile = "profile.compose-e2e"
  name    = "sample"
  hosts   = [sandboxer_host.one.ref]
}
`
	const itsWay = `tunnel = "ops-bridge", identity = { name = "ops-warden" }`
	for way, want := range map[string][]string{
		`tunnel = "ops-brigde"`:             {`the catalog has no tunnel "ops-brigde"`, "did you mean ops-bridge?"},
		`identity = { name = "ops-wardn" }`: {`the catalog has no identity "ops-wardn"`, "did you mean ops-warden?"},
		`identity = { agent = true }`: {"the profile asks for the tunnel ops-bridge", "reached without a jump host",
			`set ssh.tunnel = "ops-bridge"`},
		itsWay + `, jump = [{address = "x"}]`:              {"tunnel conflicts with jump"},
		`identity = { name = "ops-warden", agent = true }`: {"name conflicts with the rest of identity"},
	} {
		c.write(host01(way) + sandbox)
		if out, code := c.try(nil, "plan", "-no-color", "-input=false"); code == 0 || !says(out, want...) {
			t.Errorf("%s: exit %d\n%s", way, code, out)
		}
	}
	c.write(host01(itsWay) + sandbox)
	c.apply()
	c.planIsEmpty()
	if n := bridge.Connections(); n == 0 {
		t.Error("nothing went through the jump host")
	}
	if out, code := c.sandboxer("sandbox", "exec", "sample", "--", "sh", "-c", "pwd; echo in >file; cat file"); code != 0 ||
		!strings.Contains(out, "/workspace\nin") {
		t.Errorf("exec: exit %d: %s", code, out)
	}
	ref := fmt.Sprint(c.stateOf("sandboxer_host.one", "ref"))
	if out, code := c.sandboxer("host", "check", "sandboxer01"); code != 0 {
		t.Errorf("host check: exit %d: %s", code, out)
	}
	id := fmt.Sprint(c.stateOf("sandboxer_sandbox.a", "id"))

	other := newBed(t)
	far := newCLI(t, other)
	far.write("")
	state, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(far.dir, "terraform.tfstate"), state, 0o600); err != nil {
		t.Fatal(err)
	}
	before := bridge.Connections()
	if out, code := far.try(nil, "apply", "-auto-approve", "-no-color", "-input=false"); code != 0 || !says(out, "2 destroyed") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if bridge.Connections() == before {
		t.Errorf("the destroy did not go through the jump host of %s", ref)
	}
	if left := host.Processes(); len(left) > 0 {
		t.Errorf("processes are left on the host: %v", left)
	}
	if _, err := os.Stat(filepath.Join(host.HomeDir, ".sandboxer")); !os.IsNotExist(err) {
		t.Errorf("%s left its folder on the host (%v)", id, err)
	}
}
