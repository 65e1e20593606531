package remote

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// loginShells are those of hosts, as far as this machine has them. The first
// three are what sh itself may be.
var loginShells = []string{"dash", "bash", "busybox sh", "zsh", "fish", "tcsh", "csh"}

func shellArgs(t *testing.T, shell string) []string {
	t.Helper()
	args := strings.Fields(shell)
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skipf("no %s here", args[0])
	}
	args[0] = path
	return args
}

// bigScript is a script of at least 100 KB that fails loudly wherever it was
// damaged: every line counts, and the last one tells.
func bigScript() (script, out string) {
	var b strings.Builder
	b.WriteString("n=0 odd='\"$`\\ é\377\t'\n")
	lines := 0
	for ; b.Len() < 100<<10; lines++ {
		b.WriteString("n=$((n+1)) # é '\\' " + strings.Repeat("x", lines%57) + "\n")
	}
	b.WriteString("sha256sum; printf '%s %s\\n' \"$n\" \"$odd\"\n")
	return b.String(), "%s  -\n" + itoa(lines) + " \"$`\\ é\377\t\n"
}

func itoa(n int) string {
	var digits []byte
	for ; n > 0; n /= 10 {
		digits = append([]byte{byte('0' + n%10)}, digits...)
	}
	return string(digits)
}

func randomPayload(t testing.TB, size int) (payload []byte, digest string) {
	t.Helper()
	payload = make([]byte, size)
	_, _ = rand.Read(payload)
	sum := sha256.Sum256(payload)
	return payload, hex.EncodeToString(sum[:])
}

// The one line is understood by every login shell, and what follows it on
// stdin arrives whole whatever sh is.
func TestBigScriptAndPayloadInAnyShell(t *testing.T) {
	t.Parallel()
	script, want := bigScript()
	payload, digest := randomPayload(t, 8<<20)
	want = strings.Replace(want, "%s", digest, 1)
	for _, shell := range loginShells {
		t.Run(strings.ReplaceAll(shell, " ", "-"), func(t *testing.T) {
			t.Parallel()
			args := shellArgs(t, shell)
			c := open(t, hosttest.SSHD(t, hosttest.WithShell(strings.Join(args, " "))).Host(), Options{})
			var out, errs bytes.Buffer
			exit, err := c.Run(within(t, time.Minute), Command{Script: script, Stdin: bytes.NewReader(payload), Stdout: &out, Stderr: &errs})
			if err != nil || exit != 0 || out.String() != want || errs.Len() > 0 {
				t.Fatalf("exit %d, %v, stdout %q, stderr %q", exit, err, out.String(), errs.String())
			}
		})
	}
}

// The same with each shell as the sh that runs the script.
func TestBigScriptAndPayloadInAnySh(t *testing.T) {
	t.Parallel()
	script, want := bigScript()
	payload, digest := randomPayload(t, 8<<20)
	want = strings.Replace(want, "%s", digest, 1)
	for _, shell := range loginShells[:3] {
		t.Run(strings.ReplaceAll(shell, " ", "-"), func(t *testing.T) {
			t.Parallel()
			c := open(t, hosttest.SSHD(t, withSh(t, shell)).Host(), Options{})
			var out, errs bytes.Buffer
			exit, err := c.Run(within(t, time.Minute), Command{Script: script, Stdin: bytes.NewReader(payload), Stdout: &out, Stderr: &errs})
			if err != nil || exit != 0 || out.String() != want || errs.Len() > 0 {
				t.Fatalf("exit %d, %v, stdout %q, stderr %q", exit, err, out.String(), errs.String())
			}
		})
	}
}

// withSh is a host whose sh is the shell.
func withSh(t *testing.T, shell string) hosttest.Option {
	t.Helper()
	return withProgram(t, "sh", "exec "+strings.Join(shellArgs(t, shell), " ")+" \"$@\"")
}

// withProgram is a host where a program of that name comes first in PATH.
func withProgram(t *testing.T, name, script string) hosttest.Option {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return hosttest.WithConfig(`ForceCommand PATH=` + dir + `:$PATH; export PATH; eval "$SSH_ORIGINAL_COMMAND"`)
}

// A dd that takes only what is there is asked again.
func TestBigScriptAndPayloadWithADdThatDoesNotWait(t *testing.T) {
	t.Parallel()
	script, want := bigScript()
	payload, digest := randomPayload(t, 1<<20)
	want = strings.Replace(want, "%s", digest, 1)
	real, err := exec.LookPath("dd")
	if err != nil {
		t.Fatal(err)
	}
	s := hosttest.SSHD(t, withProgram(t, "dd", `case "$*" in *iflag=*) exit 1 ;; esac; echo asked >>"$HOME/asked"; exec `+real+` "$@"`))
	var out, errs bytes.Buffer
	c := open(t, s.Host(), Options{})
	exit, err := c.Run(within(t, time.Minute), Command{Script: script, Stdin: bytes.NewReader(payload), Stdout: &out, Stderr: &errs})
	if err != nil || exit != 0 || out.String() != want || errs.Len() > 0 {
		t.Errorf("exit %d, %v, stdout %q, stderr %q", exit, err, out.String(), errs.String())
	}
	if asked, err := os.ReadFile(filepath.Join(s.HomeDir, "asked")); err != nil || strings.Count(string(asked), "\n") < 2 {
		t.Errorf("it was asked %d times, %v", strings.Count(string(asked), "\n"), err)
	}
}

// Less than the whole script runs nothing at all.
func TestCutScriptRunsNothing(t *testing.T) {
	t.Parallel()
	for _, shell := range loginShells[:3] {
		t.Run(strings.ReplaceAll(shell, " ", "-"), func(t *testing.T) {
			t.Parallel()
			args := shellArgs(t, shell)
			head, err := framing{script: "echo ran >&2\n", call: true}.encode(newMark())
			if err != nil {
				t.Fatal(err)
			}
			for _, sent := range []string{"", "1", "x x\n", string(head[:10]), string(head[1:]), string(head[:len(head)/2]),
				string(head[:len(head)-1])} {
				line := strings.Replace(bootstrap, "exec env LC_ALL=C sh", "exec env LC_ALL=C "+strings.Join(args, " "), 1)
				cmd := exec.CommandContext(within(t, time.Minute), args[0], append(args[1:], "-c", line)...)
				cmd.Stdin = strings.NewReader(sent)
				out, _ := cmd.CombinedOutput()
				if strings.Contains(string(out), "ran") || strings.Contains(string(out), "sbx-") {
					t.Errorf("after %d bytes: %q", len(sent), out)
				}
			}
		})
	}
}

func TestNoiseBeforeTheScriptIsDropped(t *testing.T) {
	t.Parallel()
	for name, noise := range map[string]string{
		"motd":       "echo Welcome; echo 'a warning' >&2",
		"unfinished": "printf 'no newline'; printf 'nor here' >&2",
		"binary":     `head -c 100000 /dev/urandom; printf '\001sbx-'`,
		"much":       "head -c 900000 /dev/zero; head -c 900000 /dev/zero >&2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, hosttest.SSHD(t, hosttest.WithConfig(`ForceCommand `+noise+`; eval "$SSH_ORIGINAL_COMMAND"`)).Host(), Options{})
			if exit, out, errs := runScript(t, c, "echo out; echo err >&2; exit 3"); exit != 3 || out != "out\n" || errs != "err\n" {
				t.Fatalf("exit %d, stdout %q, stderr %q", exit, out, errs)
			}
		})
	}
}

func TestRcFilesAreSurvived(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	if err := os.WriteFile(filepath.Join(s.HomeDir, ".bashrc"), []byte("echo noise; set -o vi; alias dd=false; alias read=false\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, errs := runScript(t, open(t, s.Host(), Options{}), "echo fine"); out != "fine\n" || errs != "" {
		t.Fatalf("stdout %q, stderr %q", out, errs)
	}
}

func TestNoShell(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"nologin": "echo 'This account is currently not available.'; exit 1",
		"eats":    `read -r x; eval "$SSH_ORIGINAL_COMMAND"`,
		"bites":   `dd bs=1 count=1 of=/dev/null 2>/dev/null; eval "$SSH_ORIGINAL_COMMAND"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hosttest.SSHD(t, hosttest.WithConfig("ForceCommand "+command))
			c := open(t, s.Host(), Options{})
			// Less its first digit, the length would be that of a good part of the script.
			script := "echo ran >\"$HOME/ran\"\n"
			_, err := c.Run(within(t, time.Minute), Command{Script: script + strings.Repeat("#", 11000)})
			if fileExists(s.HomeDir + "/ran")() {
				t.Error("a piece of the script ran")
			}
			if MayHaveStarted(err) {
				t.Errorf("it says the script may have started: %v", err)
			}
			if wantRemedy(t, err); name == "nologin" && !strings.Contains(err.Error(), "This account is currently not available.") {
				t.Errorf("what the host said is missing: %v", err)
			}
		})
	}
}
