package compose

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// up runs a rendered stack on this machine's Docker until its services have
// ended, and returns what they printed and the folder the workspace was in.
func up(t *testing.T, text string, src files, o RenderOptions) (logs, folder string) {
	t.Helper()
	image := hosttest.Image(t)
	p := parse(t, strings.ReplaceAll(text, "IMAGE", image), src)
	o.ID = extensions.ID("sbx-" + strings.ToLower(rand.Text()[:20]))
	o.Labels = map[string]string{"sandboxer.test": image}
	if o.Network == "" {
		o.Network = NetworkDeny
	}
	r, err := p.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	ws := filepath.Join(folder, "workspace")
	for name, content := range src {
		if err := os.MkdirAll(filepath.Join(ws, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range r.Mkdir {
		if err := os.MkdirAll(filepath.Join(ws, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	model := filepath.Join(folder, "model.json")
	if err := os.WriteFile(model, r.Model, 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), VarWorkspace+"="+ws, VarBundle+"="+ws)
	for i := range r.Networks {
		env = append(env, netVar(i)+"="+testSubnet())
	}
	for variable, name := range r.SecretVars {
		env = append(env, variable+"=secret of "+name+" $HOME ${X}")
	}
	compose := func(args ...string) string {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "docker",
			append([]string{"compose", "--ansi=never", "-f", model, "-p", string(o.ID), "--project-directory", folder, "--env-file", "/dev/null"},
				args...)...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("compose %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	t.Cleanup(func() { compose("down", "--volumes", "--timeout", "0") })
	compose("up", "--detach", "--no-build")
	ended, err := exec.CommandContext(t.Context(), "docker", "wait",
		strings.TrimSpace(compose("ps", "--all", "--quiet", "last"))).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, ended)
	}
	return compose("logs", "--no-log-prefix", "last"), folder
}

// testSubnet is a small subnet that hardly anybody else uses.
func testSubnet() string {
	n := rand.Text()
	return "10." + itoa(200+int(n[0])%50) + "." + itoa(int(n[1])*int(n[2])%256) + "." + itoa(int(n[3])%16*16) + "/28"
}

// A service that may write the workspace cannot decide what of the host the
// next service gets.
func TestPinsHoldAgainstAService(t *testing.T) {
	t.Parallel()
	// The attacker does all it can to put a link to the host's root in the place
	// of what the other service binds; it ends before that one starts.
	const stack = `
services:
  attacker:
    image: IMAGE
    volumes: [".:/app"]
    command:
      - sh
      - -c
      - |
        cd /app
        for p in deep/a/data deep/a deep single file.txt; do
          rm -rf $$p; mv $$p gone-$$(basename $$p); rmdir $$p; umount $$p; ln -sf / $$p; ln -sfn / $$p
        done 2>/dev/null
        mkdir -p deep/a; ln -sfn / deep/a/data; ln -sfn / single; ln -sf /etc/passwd new; mv -f new file.txt
        mkdir other; mv deep other/; echo own >free; true
  last:
    image: IMAGE
    volumes: ["./deep/a/data:/one:ro", "./single:/two", "./file.txt:/three"]
    depends_on: {attacker: {condition: service_completed_successfully}}
    command: ["sh", "-c", "ls /one /two; cat /three; test -e /one/etc -o -e /two/etc && echo ESCAPED"]
`
	src := files{"deep/a/data/x": "", "single/y": "", "file.txt": "content\n"}
	logs, folder := up(t, stack, src, RenderOptions{Service: "last"})
	if strings.Contains(logs, "ESCAPED") || strings.Contains(logs, "root:") || !strings.Contains(logs, "/one:") {
		t.Errorf("the other service sees:\n%s", logs)
	}
	if _, err := os.Stat(filepath.Join(folder, "workspace", "free")); err != nil {
		t.Errorf("the attacker could write nothing at all, so that the test proves nothing: %v", err)
	}
	for _, name := range []string{"deep/a/data", "single"} {
		if info, err := os.Lstat(filepath.Join(folder, "workspace", name)); err != nil || !info.IsDir() {
			t.Errorf("%s was replaced: %v %v", name, info, err)
		}
	}
}

// What a rendered stack promises is so in a container.
func TestRenderedStackRuns(t *testing.T) {
	t.Parallel()
	const stack = `
services:
  last:
    image: IMAGE
    environment: {A: "$$HOME '\"\\ é", TOKEN: }
    configs: [{source: c, target: /c}]
    secrets: [s]
    command: ["sh", "-c", "echo A=$$A; echo T=$$TOKEN; cat /c; echo; cat /run/secrets/s; echo; pwd; ls /work; grep -E 'NoNewPrivs|CapBnd' /proc/self/status; cat /etc/resolv.conf; ip route; ping -c1 -W1 1.1.1.1; cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null"]
    working_dir: /work
configs: {c: {content: "c $$x"}}
secrets: {s: {environment: TOKEN}}
`
	memory, pids := int64(64), int64(77)
	logs, _ := up(t, stack, files{"hello": ""}, RenderOptions{
		Mount: "/work", SecretNames: []string{"TOKEN"}, Resources: extensions.Resources{MemoryMB: &memory, Pids: &pids},
	})
	for _, want := range []string{"A=$HOME '\"\\ é\n", "T=secret of TOKEN $HOME ${X}\n", "c $x\n", "\nsecret of TOKEN $HOME ${X}\n",
		"\n/work\n", "\nhello\n", "NoNewPrivs:\t1", "\n77\n"} {
		if !strings.Contains(logs, want) {
			t.Errorf("%q is missing in\n%s", want, logs)
		}
	}
	if strings.Contains(logs, "bytes from") {
		t.Errorf("something answered:\n%s", logs)
	}
}

// The container of an image that has no command ends at once when it is told to.
func TestKeepAliveEndsAtOnce(t *testing.T) {
	t.Parallel()
	image := hosttest.Image(t)
	name := "sandboxer-test-" + strings.ToLower(rand.Text())
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "docker", "rm", "--force", name).Run() })
	out, err := exec.CommandContext(t.Context(), "docker", "run", "--detach", "--init", "--network", "none", "--name", name, "--entrypoint",
		"/bin/sh", image, "-c", keepAlive).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	time.Sleep(300 * time.Millisecond)
	begin := time.Now()
	if out, err := exec.CommandContext(t.Context(), "docker", "stop", "--time", "10", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("stopping took %v", took)
	}
	out, err = exec.CommandContext(t.Context(), "docker", "inspect", "--format", "{{.State.ExitCode}}", name).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "0" {
		t.Errorf("it ended with %s, %v", out, err)
	}
}
