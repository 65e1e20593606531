//go:build unix

package provider

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
)

func TestTerraformWithALedgerOnAServer(t *testing.T) {
	t.Parallel()
	stopServers = pgtest.Stop
	cut := pgtest.NewCutter(t, pgtest.New(t))
	c := newCLI(t, newBed(t))
	sandboxer := func(args ...string) string {
		t.Helper()
		bin, err := builtProvider()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(bin, "terraform-provider-sandboxer"),
			append(args, "--state-dir", c.b.state, "--catalog", c.b.catalog, "--account", "acme/web", "--ledger", cut.Address)...)
		cmd.Env = c.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	write := func(ttl string) {
		t.Helper()
		c.write(sandboxHCL("name = \"far\"\nttl = \"" + ttl + "\""))
		file := filepath.Join(c.dir, "main.tf")
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.Replace(string(text), "  account ", "  ledger = \""+cut.Address+"\"\n  account ", 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("1h")
	c.must("plan", "-out=p", "-no-color")
	c.must("apply", "-no-color", "p")
	c.planIsEmpty()
	if list := sandboxer("sandbox", "list"); !strings.Contains(list, "far") {
		t.Errorf("the ledger has %s", list)
	}
	write("2h")
	c.apply()
	c.planIsEmpty()

	cut.Off()
	if out := c.destroy(); !strings.Contains(out, "not settled in the ledger") {
		t.Errorf("destroyed without the ledger:\n%s", out)
	}
	cut.On()
	sandboxer("sweep")
	if list := sandboxer("sandbox", "list"); strings.Contains(list, "far") {
		t.Errorf("not settled: %s", list)
	}
	sandboxer("ledger", "verify")
}
