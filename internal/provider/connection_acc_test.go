package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// use hands what an ephemeral connection gives to a command on this machine, which a state cannot hold.
func use(values, command string) string {
	return "resource \"terraform_data\" \"use\" {\n  triggers_replace = [sandboxer_sandbox.a.id]\n  provisioner \"local-exec\" {\n    environment = {\n" +
		values + "\n    }\n    command = \"" + command + "\"\n  }\n}\n"
}

func TestAConnectionGivesURLsThatNoStateHolds(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	connect := func(ports string) string {
		return sandboxHCL("name = \"one\"") + "ephemeral \"sandboxer_connection\" \"c\" {\n  sandbox_id = sandboxer_sandbox.a.id\n" + ports +
			"\n}\n" + use("      URL = ephemeral.sandboxer_connection.c.urls.web.address\n"+
			"      DIR = ephemeral.sandboxer_connection.c.work_dir", "printf '%s' \\\"$URL\\\" >url")
	}
	c.write(connect("url_ports = { web = 8080 }"))
	c.apply()
	c.planIsEmpty()
	url, err := os.ReadFile(filepath.Join(c.dir, "url"))
	if err != nil || !strings.Contains(string(url), "8080") {
		t.Errorf("the URL is %q (%v)", url, err)
	}
	state, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate"))
	if err != nil || len(url) == 0 || strings.Contains(string(state), string(url)) {
		t.Errorf("the state has the URL (%v)", err)
	}
	c.write(connect("url_ports = { web = 8080 }\nports = { web = { port = 8080 } }"))
	if out, code := c.try(nil, "plan", "-no-color"); code == 0 || !says(out, "No connection to sandbox", "not supported here") {
		t.Errorf("ports of a place that has none: exit %d\n%s", code, out)
	}
	c.write(connect("url_ports = { web = 70000 }"))
	if out, code := c.try(nil, "plan", "-no-color"); code == 0 || !says(out, "out of range") {
		t.Errorf("a port that is none: exit %d\n%s", code, out)
	}
	// Nothing of it is in the way of an end.
	c.write(connect("url_ports = { web = 8080 }"))
	b.script(vendor.Rule{Op: vendor.OpGet, Do: vendor.DoUnreachable})
	c.destroy("-refresh=false")
	b.script()
	c.nothingLeft()
}

func TestAConnectionForwardsPortsForTheRun(t *testing.T) {
	t.Parallel()
	s, image := requireHost(t)
	b := newBed(t)
	b.stack(image, stackYAML)
	within := []string{"acme/ports" + filepath.Base(s.HomeDir), s.HomeDir}
	before := hosttest.Snapshot(t, within...)
	c := newCLI(t, b)
	c.write(sshHost(s, "") + replaced(sandboxHCL("name = \"one\"\nhosts = [sandboxer_host.far.ref]"), "profile.stub", "profile.stack") +
		"ephemeral \"sandboxer_connection\" \"c\" {\n  sandbox_id = sandboxer_sandbox.a.id\n" +
		"  ports = { web = { port = 8080 }, api = { port = 8081, service = \"api\" } }\n}\n" +
		use("      WEB = ephemeral.sandboxer_connection.c.addresses.web\n      API = ephemeral.sandboxer_connection.c.addresses.api",
			"(exec 3<>/dev/tcp/$${WEB%:*}/$${WEB#*:}; printf 'GET /name HTTP/1.0\\\\r\\\\n\\\\r\\\\n' >&3; cat <&3) >web; "+
				"(exec 3<>/dev/tcp/$${API%:*}/$${API#*:}; printf 'GET /name HTTP/1.0\\\\r\\\\n\\\\r\\\\n' >&3; cat <&3) >api"))
	text, err := os.ReadFile(filepath.Join(c.dir, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	c.add("main.tf", strings.Replace(string(text), "  provisioner \"local-exec\" {\n", "  provisioner \"local-exec\" {\n    interpreter = [\"bash\", \"-c\"]\n", 1))
	c.account(within[0])
	c.apply()
	c.planIsEmpty()
	for _, name := range []string{"web", "api"} {
		if raw, err := os.ReadFile(filepath.Join(c.dir, name)); err != nil || !strings.HasSuffix(string(raw), "\r\n\r\n"+name+"\n") {
			t.Errorf("%s answered %q (%v)", name, raw, err)
		}
	}
	c.destroy()
	leavesNothing(t, s, before, within...)
}
