package provider

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// requireHost gives an sshd of this test's own in front of this machine's
// Docker, and an image that needs no registry.
func requireHost(t *testing.T) (*hosttest.Server, string) {
	t.Helper()
	requireTerraform(t)
	hosttest.Docker(t)
	image := hosttest.Image(t)
	return hosttest.SSHD(t), image
}

// sshHost is a sandboxer_host for the server, with more arguments if wanted.
func sshHost(s *hosttest.Server, more string) string {
	return fmt.Sprintf(`
resource "sandboxer_host" "far" {
  name = "far"
  ssh  = { address = %q, port = %d, user = %q, host_key = %q, identity = { private_key_file = %q } }
  %s
}
`, s.Address, s.Port, s.User, s.HostKeyLine, s.KeyFile, more)
}

const stackProfile = `
extends: profile.compose-e2e
compose: { file: compose.yaml, service: web, bundle: stack }
inputs: { repo: { type: string, required: false } }
`

const stackYAML = `
services:
  db:
    image: IMAGE
    command: [sh, -c, "echo up >/tmp/up; exec nc -ll -p 5432 -e cat"]
    healthcheck: { test: [CMD, test, -f, /tmp/up], interval: 1s, retries: 60 }
    stop_grace_period: 0s
  api:
    image: IMAGE
    command: [sh, -c, "mkdir -p /srv; echo api >/srv/name; exec httpd -f -p 8081 -h /srv"]
    depends_on: { db: { condition: service_healthy } }
    stop_grace_period: 0s
  web:
    image: IMAGE
    command: [sh, -c, "mkdir -p /srv; echo web >/srv/name; exec httpd -f -p 8080 -h /srv"]
    volumes: ["data:/data"]
    depends_on: { api: { condition: service_started } }
    stop_grace_period: 0s
volumes: { data: {} }
`

// stack gives the bed a profile with the Compose file as its bundle.
func (b *bed) stack(image, yaml string) {
	b.t.Helper()
	b.profile("profile.stack", stackProfile)
	b.write("catalog/profiles/stack/compose.yaml", strings.ReplaceAll(yaml, "IMAGE", image))
}

// leavesNothing compares what the machine holds with what it held.
func leavesNothing(t *testing.T, s *hosttest.Server, before hosttest.Inventory, within ...string) {
	t.Helper()
	if diff := before.Diff(hosttest.Snapshot(t, within...)); diff != "" {
		t.Errorf("the host is not as it was:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(s.HomeDir, ".sandboxer")); !os.IsNotExist(err) {
		t.Errorf("the folder of the sandboxes is still there (%v)", err)
	}
	noToolbox(t, s)
	if left := s.Processes(); len(left) > 0 {
		t.Errorf("processes are left on the host: %v", left)
	}
}

// noToolbox fails where the image of the host's own tools, which is tagged by
// the sum of the folder's name, is still there.
func noToolbox(t *testing.T, s *hosttest.Server) {
	t.Helper()
	sum := exec.Command("cksum")
	sum.Stdin = strings.NewReader(filepath.Join(s.HomeDir, ".sandboxer"))
	out, err := sum.Output()
	if err != nil {
		t.Fatal(err)
	}
	tag := "sandboxer.invalid/toolbox:" + strings.Fields(string(out))[0]
	if exec.Command("docker", "image", "inspect", tag).Run() == nil {
		t.Errorf("the image %s is left on the host", tag)
	}
}

func TestTenStacksInOneApplyAndNothingLeft(t *testing.T) {
	s, image := requireHost(t)
	b := newBed(t)
	b.stack(image, stackYAML)
	account := "acme/ten" + strings.ToLower(t.Name()[:4]) + strconv.Itoa(s.Port)
	within := []string{account, s.HomeDir}
	before := hosttest.Snapshot(t, within...)
	c := newCLI(t, b)
	c.write(sshHost(s, "") + `
resource "sandboxer_sandbox" "s" {
  count   = 10
  profile = "profile.stack"
  name    = "stack-${count.index}"
  hosts   = [sandboxer_host.far.ref]
  ttl     = "30m"
}
`)
	c.account(account)
	connections := func(what string, most int, do func()) {
		t.Helper()
		was := s.Connections()
		do()
		if n := s.Connections() - was; n > most {
			t.Errorf("%s took %d connections, want at most %d", what, n, most)
		}
	}
	connections("the apply", 2, func() { c.apply() })
	diff := before.Diff(hosttest.Snapshot(t, within...))
	for kind, want := range map[string]int{"container": 30, "network": 10, "volume": 10} {
		if n := strings.Count(diff, "+ "+kind+": "); n != want {
			t.Errorf("%d %ss were made, want %d", n, kind, want)
		}
	}
	connections("the second plan", 2, func() { c.planIsEmpty() })
	// A destroy is two runs of the provider: one refreshes, one destroys.
	connections("the destroy", 4, func() { c.destroy() })
	if s.Throttled() {
		t.Error("sshd turned connections away")
	}
	leavesNothing(t, s, before, within...)
}

// account replaces the bed's own, so that an inventory sees this test alone.
func (c *cli) account(name string) {
	c.t.Helper()
	file := filepath.Join(c.dir, "main.tf")
	raw, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	text := strings.Replace(string(raw), `"acme/web"`, strconv.Quote(name), 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { // whatever the test left alive, before its bed goes
		if out, code := c.try(nil, "destroy", "-auto-approve", "-no-color", "-input=false", "-lock=false"); code != 0 {
			c.t.Errorf("cleaning up: exit %d\n%s", code, out)
		}
	})
}

func TestAStackIsReachedAsItsStateSays(t *testing.T) {
	t.Parallel()
	s, image := requireHost(t)
	b := newBed(t)
	b.stack(image, stackYAML)
	c := newCLI(t, b)
	c.write(sshHost(s, "") + sandboxOn("profile.stack"))
	c.apply()
	reach, _ := c.stateOf("sandboxer_sandbox.a", "reachability").(map[string]any)
	id := c.stateOf("sandboxer_sandbox.a", "id")
	if reach["compose_project"] != id || reach["host"] != "far" || !strings.Contains(fmt.Sprint(reach["ssh"]), s.User+"@"+s.Address) {
		t.Errorf("reachability of %v: %v", id, reach)
	}
	facts, _ := c.stateOf("sandboxer_host.far", "facts").(map[string]any)
	if facts["docker"] == nil || facts["compose"] == nil || facts["egress"] != "deny-only" || facts["expiry"] != "host" {
		t.Errorf("facts: %v", facts)
	}
	if out, code := c.sandboxer("sandbox", "exec", "--service", "api", "one", "--", "cat", "/srv/name"); code != 0 ||
		strings.TrimSpace(out) != "api" {
		t.Errorf("exec in api: exit %d: %s", code, out)
	}
	if out, code := c.sandboxer("sandbox", "exec", "one", "--", "wget", "-q", "-O", "-", "http://api:8081/name"); code != 0 ||
		strings.TrimSpace(out) != "api" {
		t.Errorf("web asks api by its name: exit %d: %s", code, out)
	}
	if got := c.forwarded("one", "8081", "--service", "api"); got != "api" {
		t.Errorf("a forwarded port answers %q", got)
	}
	c.planIsEmpty()
	c.destroy()
}

// forwarded asks for /name through `sandbox forward`.
func (c *cli) forwarded(args ...string) string {
	c.t.Helper()
	cmd := c.sandboxerCommand(append([]string{"sandbox", "forward"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			c.t.Errorf("forward: %v: %s", err, complaints.String())
		}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		c.t.Errorf("forward printed no address: %v: %s", err, complaints.String())
		return ""
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+strings.TrimSpace(line)+"/name", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Errorf("through the forwarded port: %v: %s", err, complaints.String())
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Error(err)
	}
	return strings.TrimSpace(string(body))
}

func sandboxOn(profile string) string {
	return "resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"" + profile +
		"\"\n  name = \"one\"\n  ttl = \"30m\"\n  hosts = [sandboxer_host.far.ref]\n}\n"
}

func TestAHostWithAnotherKeyIsRefusedWithItsFingerprint(t *testing.T) {
	t.Parallel()
	s, _ := requireHost(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write(strings.Replace(sshHost(s, ""), s.HostKeyLine, hosttest.NewKey(t, "ed25519").Line, 1))
	out, code := c.try(nil, "apply", "-auto-approve", "-no-color", "-input=false")
	if code == 0 || !regexp.MustCompile(`SHA256:[A-Za-z0-9+/]{43}`).MatchString(out) || !strings.Contains(flat(out), "Host \"far\"") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if strings.Contains(s.Log(), "Accepted publickey") {
		t.Error("it logged in although the key was wrong")
	}
}

// flat undoes how Terraform breaks lines.
func flat(out string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╵", " ", "╷", " ").Replace(out)), " ")
}

func TestAHostileStackIsRefusedAtPlanByItsRule(t *testing.T) {
	t.Parallel()
	s, image := requireHost(t)
	for rule, yaml := range map[string]string{
		"privileged":    "services: { web: { image: IMAGE, privileged: true } }\n",
		"docker-socket": "services: { web: { image: IMAGE, volumes: [\"/var/run/docker.sock:/x\"] } }\n",
		"host-network":  "x-a: &a { network_mode: host }\nservices: { web: { image: IMAGE, <<: *a } }\n",
	} {
		b := newBed(t)
		b.stack(image, yaml)
		c := newCLI(t, b)
		c.write(sshHost(s, "") + sandboxOn("profile.stack"))
		out, code := c.try(nil, "plan", "-no-color", "-input=false")
		if code == 0 || !strings.Contains(flat(out), rule) {
			t.Errorf("%s: exit %d:\n%s", rule, code, out)
		}
	}
	if s.Connections() > 0 {
		t.Error("a plan dialled")
	}
}

func TestAnAllowlistIsRefusedWhereTheHostDoesNotAllowFirewallRules(t *testing.T) {
	t.Parallel()
	s, image := requireHost(t)
	b := newBed(t)
	b.stack(image, stackYAML)
	b.profile("profile.listed", "extends: profile.stack\nnetwork: { default: deny, egress: [\"10.2.0.0/16:443\"] }\n")
	c := newCLI(t, b)
	c.write(sshHost(s, "") + sandboxOn("profile.listed"))
	out, code := c.try(nil, "plan", "-no-color", "-input=false")
	if text := flat(out); code == 0 || !strings.Contains(text, "viability.egress") || !strings.Contains(text, "allow_firewall") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// A host that does not answer is a warning, and what is known of it is kept.
func TestAHostThatDoesNotAnswerKeepsItsState(t *testing.T) {
	t.Parallel()
	s, _ := requireHost(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sshHost(s, ""))
	c.apply()
	before := c.stateOf("sandboxer_host.far", "facts")
	s.Stop()
	out, code := c.try(nil, "plan", "-detailed-exitcode", "-no-color", "-input=false")
	if code != 0 || !strings.Contains(flat(out), "could not be probed") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	c.must("apply", "-refresh-only", "-auto-approve", "-no-color", "-input=false")
	if after := c.stateOf("sandboxer_host.far", "facts"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("facts were %v, are %v", before, after)
	}
	c.destroy() // nothing lives there: the host need not answer to be forgotten
}

// Facts that changed behind our back show as drift: here another machine
// answers at the same address, by the same key.
func TestChangedFactsShowAsDrift(t *testing.T) {
	t.Parallel()
	s, _ := requireHost(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sshHost(s, ""))
	c.apply()
	port := s.Port
	s.Stop()
	withoutDocker(t, port)
	out, code := c.try(nil, "plan", "-refresh-only", "-detailed-exitcode", "-no-color", "-input=false")
	if code != 2 || !strings.Contains(out, "docker") || !strings.Contains(out, "sandboxer_host.far") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// withoutDocker starts a server at the port, with the same keys, where Docker
// does not answer.
func withoutDocker(t *testing.T, port int) {
	t.Helper()
	hosttest.SSHD(t, hosttest.WithPort(port), hosttest.WithConfig("SetEnv HOME=%DIR%/home DOCKER_HOST=unix:///nowhere.sock"))
}

func TestHostCheckTellsWhatIsThereAndWhatIsMissing(t *testing.T) {
	t.Parallel()
	s, _ := requireHost(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sshHost(s, ""))
	c.apply()
	out, code := c.sandboxer("host", "check", "far")
	fingerprint := ssh.FingerprintSHA256(s.HostKeys[0].Signer.PublicKey())
	for _, want := range []string{"pinned, " + fingerprint, s.User + "@" + s.Address, "container", "deny-only", "clock skew", "free disk"} {
		if !strings.Contains(out, want) {
			t.Errorf("host check does not tell %q", want)
		}
	}
	if code != 0 {
		t.Errorf("exit %d:\n%s", code, out)
	}
	noToolbox(t, s)
	port := s.Port
	s.Stop()
	if out, code := c.sandboxer("host", "check", "far"); code != 5 {
		t.Errorf("a host that does not answer: exit %d, want 5:\n%s", code, out)
	}
	withoutDocker(t, port)
	if out, code := c.sandboxer("host", "check", "far"); code != 7 || !strings.Contains(out, "note") ||
		!strings.Contains(out, "Docker does not answer") {
		t.Errorf("a host without Docker: exit %d, want 7:\n%s", code, out)
	}
	var shown struct {
		Usable bool
		Facts  struct{ Notes []string }
	}
	out, _ = c.sandboxer("--format", "json", "host", "check", "far")
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&shown); err != nil || shown.Usable || len(shown.Facts.Notes) == 0 {
		t.Errorf("as JSON: %+v, %v:\n%s", shown, err, out)
	}
}

// sandboxer runs the command line over the bed's ledger, as a person would.
func (c *cli) sandboxer(args ...string) (string, int) {
	c.t.Helper()
	cmd := c.sandboxerCommand(args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (c *cli) sandboxerCommand(args ...string) *exec.Cmd {
	c.t.Helper()
	bin, err := builtProvider()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "terraform-provider-sandboxer"), args...)
	cmd.Env = append(os.Environ(), "SANDBOXER_STATE_DIR="+c.b.state, "SANDBOXER_CATALOG="+c.b.catalog, "SANDBOXER_ACCOUNT=acme/web",
		"SANDBOXER_LEDGER=", "CI=")
	return cmd
}

func TestAnSSHHostInUseIsNotRemovedUnlessForced(t *testing.T) {
	t.Parallel()
	s, image := requireHost(t)
	b := newBed(t)
	b.stack(image, stackYAML)
	c := newCLI(t, b)
	c.write(sshHost(s, "") + sandboxOn("profile.stack"))
	c.apply()
	out, code := c.try(nil, "destroy", "-target=sandboxer_host.far", "-auto-approve", "-no-color", "-input=false")
	_ = out // the sandbox refers to the host, so Terraform ends both
	if code != 0 {
		t.Fatalf("destroying the host with its sandbox: exit %d\n%s", code, out)
	}
	c.apply()
	c.must("state", "rm", "sandboxer_sandbox.a")
	if out, code := c.try(nil, "destroy", "-auto-approve", "-no-color", "-input=false"); code == 0 ||
		!strings.Contains(flat(out), "force_destroy") {
		t.Errorf("a host in use: exit %d\n%s", code, out)
	}
	c.write(sshHost(s, "force_destroy = true"))
	c.apply()
	c.destroy()
}

// The example runs as a new user would run it, against a host of this test.
func TestTheComposeExamplePassesTerraformTest(t *testing.T) {
	s, image := requireHost(t)
	c := example(t, "compose-e2e")
	c.hostVariables(s, image)
	before := hosttest.Snapshot(t, s.HomeDir)
	args := []string{"test", "-no-color"}
	out, code := c.try(nil, args...)
	if code != 0 || !strings.Contains(out, "3 passed, 0 failed") {
		t.Errorf("exit %d\n%s", code, out)
	}
	c.ownsNothing()
	leavesNothing(t, s, before, s.HomeDir)
	c.replaceIn("stack/worker.sh", "tr '[:lower:]' '[:upper:]' <\"$job\"", "cat \"$job\"")
	if out, code := c.try(nil, args...); code == 0 || !strings.Contains(out, "got 'job 1'") {
		t.Errorf("a broken stack passed: exit %d\n%s", code, out)
	}
	c.ownsNothing()
	leavesNothing(t, s, before, s.HomeDir)
}

func (c *cli) hostVariables(s *hosttest.Server, image string) {
	c.t.Helper()
	host, err := json.Marshal(map[string]any{"address": s.Address, "port": s.Port, "user": s.User, "host_key": s.HostKeyLine,
		"private_key_file": s.KeyFile})
	if err != nil {
		c.t.Fatal(err)
	}
	c.env = append(c.env, "TF_VAR_host="+string(host), "TF_VAR_image="+image)
}

func (c *cli) replaceIn(name, from, to string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	raw, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(string(raw), from) {
		c.t.Fatalf("%s has no %q", name, from)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), from, to, 1)), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// The example of a host over SSH, with the address and keys of a real one.
func TestTheExampleOfAnSSHHostIsApplied(t *testing.T) {
	t.Parallel()
	s, _ := requireHost(t)
	c := example(t, "resources/sandboxer_host")
	raw, err := os.ReadFile(filepath.Join(examples, "resources/sandboxer_host/ssh.tf"))
	if err != nil {
		t.Fatal(err)
	}
	c.add("ssh.tf", atHost(t, string(raw), s))
	c.apply()
	c.planIsEmpty()
	c.destroy()
}

// atHost is the configuration with the server's address and keys.
func atHost(t *testing.T, text string, s *hosttest.Server) string {
	t.Helper()
	for pattern, value := range map[string]string{
		`address += "[^"]+"`: `address = "` + s.Address + `"`, `port += 22`: "port = " + strconv.Itoa(s.Port), `user += "[^"]+"`: `user = "` +
			s.User + `"`,
		`host_key = "[^"]+"`: `host_key = "` + s.HostKeyLine + `"`, `private_key_file = "[^"]+"`: `private_key_file = "` + s.KeyFile + `"`,
	} {
		changed := regexp.MustCompile(pattern).ReplaceAllLiteralString(text, value)
		if changed == text {
			t.Fatalf("nothing in the example matches %s", pattern)
		}
		text = changed
	}
	return text
}

// nobodyListens returns an address where nothing answers.
func nobodyListens(t *testing.T) (string, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := l.Addr().(*net.TCPAddr)
	return a.IP.String(), a.Port
}

func TestAHostWhereNobodyListensIsToldAsSuch(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	b := newBed(t)
	address, port := nobodyListens(t)
	cfg := fmt.Sprintf("resource \"sandboxer_host\" \"far\" {\n  name = \"far\"\n  ssh = { address = %q, port = %d, user = \"u\", host_key "+
		"= %q }\n}\n",
		address, port, hosttest.NewKey(t, "ed25519").Line)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: b.factories(), Steps: []resource.TestStep{
		{Config: b.config(cfg), ExpectError: regexp.MustCompile(`(?s)Host "far".*(refused|reached)`)}}})
}

// The second example of the README: Docker on this machine and nothing else.
func TestTheContainerExampleIsApplied(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	hosttest.Docker(t)
	image := hosttest.Image(t)
	c := example(t, "container")
	c.replaceIn("main.tf", "docker.io/library/debian:12-slim", image)
	c.apply()
	if at := c.stateOf("sandboxer_sandbox.box", "extension"); at != "ext.docker" {
		t.Errorf("it runs at %v", at)
	}
	c.planIsEmpty()
	if out, code := c.sandboxer("sandbox", "exec", "--account", "default/default", "box", "--", "sh", "-c", "echo inside $((6 * 7))"); code != 0 || !strings.Contains(out, "inside 42") {
		t.Errorf("exit %d: %s", code, out)
	}
	c.destroy()
	c.ownsNothing()
}
