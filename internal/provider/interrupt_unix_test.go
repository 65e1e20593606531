//go:build unix

package provider

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// shared is a buffer that is read while a command writes it.
type shared struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// ctrlC runs terraform, presses Ctrl-C once it has told what it does and the place is asked, which never answers, and
// returns what it printed.
func (c *cli) ctrlC(does string, asked func() bool, args ...string) string {
	c.t.Helper()
	cmd := c.command(nil, append(args, "-no-color", "-input=false")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out shared
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.b.eventually(does, func() bool { return strings.Contains(out.String(), does) })
	c.b.eventually("the place is asked", asked)
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		c.t.Fatalf("terraform %v was interrupted and succeeded:\n%s", args, out.String())
	}
	return out.String()
}

// silent is an address where a connection is accepted and nobody speaks.
func silent(t *testing.T) (port int, asked func() bool) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var accepted atomic.Bool
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		accepted.Store(true)
		_, _ = l.Accept() // until the test ends
	}()
	return l.Addr().(*net.TCPAddr).Port, accepted.Load
}

// calls counts those of the vendor's operations.
func (b *bed) calls(ops []vendor.Op) (n int64) {
	b.t.Helper()
	all, err := b.vendor().Calls()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, op := range ops {
		n += all[op]
	}
	return n
}

// Ctrl-C is told as that, with what helps: not as a timeout to be raised, and
// not as a place that is out of reach.
func TestWhatWasInterruptedIsToldSo(t *testing.T) {
	t.Parallel()
	const one = "name = \"one\"\nttl = \"1h\""
	snapshot := sandboxHCL(one) + "resource \"sandboxer_snapshot\" \"s\" {\n  sandbox_id = sandboxer_sandbox.a.id\n}\n"
	apply := []string{"apply", "-auto-approve"}
	port, dialed := silent(t)
	for name, x := range map[string]struct {
		before, body, does string
		rules              []vendor.Op
		args               []string
	}{
		"create": {body: sandboxHCL(one), does: "a: Creating...", rules: []vendor.Op{vendor.OpCreate}, args: apply},
		"read": {before: sandboxHCL(one), body: sandboxHCL(one), does: "a: Refreshing state...",
			rules: []vendor.Op{vendor.OpGet, vendor.OpList, vendor.OpFind}, args: []string{"plan"}},
		"update": {before: sandboxHCL(one), body: sandboxHCL("name = \"one\"\nttl = \"2h\""), does: "a: Modifying...",
			rules: []vendor.Op{vendor.OpExtend}, args: apply},
		"destroy": {before: sandboxHCL(one), body: sandboxHCL(one), does: "a: Destroying...", rules: []vendor.Op{vendor.OpDelete},
			args: []string{"destroy", "-auto-approve"}},
		"replace": {before: sandboxHCL(one), body: sandboxHCL(one + "\ntriggers = { a = \"1\" }"), does: "a: Destroying...",
			rules: []vendor.Op{vendor.OpDelete}, args: apply},
		"snapshot": {before: sandboxHCL(one), body: snapshot, does: "s: Creating...", rules: []vendor.Op{vendor.OpSnapshot},
			args: apply},
		"read a snapshot": {before: snapshot, body: snapshot, does: "s: Refreshing state...", rules: []vendor.Op{vendor.OpGetSnapshot},
			args: []string{"plan"}},
		"delete a snapshot": {before: snapshot, body: sandboxHCL(one), does: "s: Destroying...", rules: []vendor.Op{vendor.OpDeleteSnapshot},
			args: append(apply, "-refresh=false")},
		"host": {body: fmt.Sprintf("resource \"sandboxer_host\" \"h\" {\n  name = \"h\"\n  ssh = { address = \"127.0.0.1\", port = %d, user = "+
			"\"x\", host_key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\" }\n}\n", port),
			does: "h: Creating...", args: apply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c := newCLI(t, b)
			if x.before != "" {
				c.write(x.before)
				c.apply()
			}
			var rules []vendor.Rule
			for _, op := range x.rules {
				rules = append(rules, vendor.Rule{Op: op, Do: vendor.DoHangBefore, Times: 1})
			}
			b.script(rules...)
			c.write(x.body)
			before := b.calls(x.rules)
			asked := func() bool { return b.calls(x.rules) > before }
			if name == "host" {
				asked = dialed
			}
			out := c.ctrlC(x.does, asked, x.args...)
			b.script()
			if !says(out, "it was interrupted", "run the same command again") {
				t.Errorf("it is not told:\n%s", out)
			}
			for _, wrong := range []string{"took too long", "timeout", "forget", "-refresh=false", "removed {", "TF_LOG", "not known yet"} {
				if says(out, wrong) {
					t.Errorf("it says %q:\n%s", wrong, out)
				}
			}
			if name != "host" {
				c.must(append(x.args, "-no-color", "-input=false")...)
			}
			c.destroy()
			c.nothingLeft()
		})
	}
}

// The time of the `timeouts` block is told as that.
func TestATimeoutIsToldAsOne(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL("name = \"one\"\ntimeouts = { delete = \"2s\" }"))
	c.apply()
	b.script(vendor.Rule{Op: vendor.OpDelete, Do: vendor.DoHangBefore, Times: 1})
	out, code := c.try(nil, "destroy", "-auto-approve", "-no-color", "-input=false")
	if code == 0 || !says(out, "it took too long") || says(out, "it was interrupted") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	c.destroy()
	c.nothingLeft()
}

// A command that was interrupted has perhaps run in part: that is said, it goes on nowhere, and the next apply
// runs it again. So does one whose Terraform was killed, of which no state is left.
func TestACommandThatWasInterruptedRunsAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, c *cli, cmd *exec.Cmd, out *shared){
		"Ctrl-C": func(t *testing.T, c *cli, cmd *exec.Cmd, out *shared) {
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil || !says(out.String(), "it was interrupted", "may have run in part") {
				t.Errorf("%v:\n%s", err, out.String())
			}
			if shown := c.must("show", "-no-color"); !strings.Contains(shown, "sandboxer_exec.e: (tainted)") {
				t.Errorf("it is not tainted:\n%s", shown)
			}
		},
		"killed": func(t *testing.T, _ *cli, cmd *exec.Cmd, _ *shared) {
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireTerraform(t)
			requireLocal(t)
			b := newBed(t)
			c := newCLI(t, b)
			one := replaced(sandboxHCL("name = \"one\""), "profile.stub", "profile.quickstart")
			c.write(one)
			c.apply()
			c.write(one + execHCL("shell = \"echo began >>ran; test -e free || { sleep 600; echo went on >>ran; }\"\ntimeout = \"1h\""))
			cmd := c.command(nil, "apply", "-auto-approve", "-no-color", "-input=false")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			var out shared
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			b.eventually("the command runs", func() bool { return b.inside("one", "cat ran 2>/dev/null; true") != "" })
			end(t, c, cmd, &out)
			b.eventually("nothing of it runs on", func() bool {
				return b.inside("one", "n=0; for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^sleep 600' && n=1; done; echo $n") == "0\n"
			})
			b.inside("one", "touch free")
			c.apply()
			c.planIsEmpty()
			if ran := b.inside("one", "cat ran"); ran != "began\nbegan\n" {
				t.Errorf("it ran %q", ran)
			}
			c.destroy()
			c.nothingLeft()
		})
	}
}
