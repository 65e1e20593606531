//go:build unix

package execwire_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire/execwiretest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

func TestProgramsArePOSIX(t *testing.T) {
	t.Parallel()
	all := shtexttest.Programs(t, execwire.Scripts)
	all["bootstrap"] = bootstrap(t)
	shtexttest.POSIX(t, all)
}

type place struct{ execwiretest.Place }

// bootstrap is the command line of every command.
func bootstrap(t *testing.T) string {
	t.Helper()
	var line string
	_, _ = execwire.Run(t.Context(), extensions.ExecRequest{Shell: "x"}, execwire.Inside("", func(_ context.Context, p execwire.Process) (int, error) {
		line = p.Argv[2]
		return 127, nil
	}))
	return line
}

// inEveryShell runs a test in each shell of this machine: with the machine's tools, and with nothing else.
func inEveryShell(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	for _, shell := range shtexttest.Shells(t) {
		at, err := exec.LookPath(shell[0])
		if err != nil {
			t.Fatal(err)
		}
		shell = append([]string{at}, shell[1:]...)
		for what, path := range map[string]string{"tools": os.Getenv("PATH"), "alone": "/nonexistent"} {
			t.Run(filepath.Base(strings.Join(shell, "-"))+"/"+what, func(t *testing.T) {
				t.Parallel()
				test(t, place{execwiretest.Place{Shell: shell, Dir: t.TempDir(), Env: []string{"PATH=" + path, "limit=mine", "code=mine", "mark=mine"}}})
			})
		}
	}
}

func (p place) run(t *testing.T, req extensions.ExecRequest) (extensions.ExecResult, error) {
	t.Helper()
	return execwire.Run(t.Context(), req, execwire.Inside(p.Dir, p.Transport))
}

func (p place) must(t *testing.T, req extensions.ExecRequest) extensions.ExecResult {
	t.Helper()
	r, err := p.run(t, req)
	if err != nil {
		t.Fatalf("%v: %v (%s)", req.Argv(), err, r.Stderr)
	}
	return r
}

func TestACommandArrivesAsItIs(t *testing.T) {
	t.Parallel()
	inEveryShell(t, func(t *testing.T, p place) {
		var all strings.Builder
		for c := range 255 {
			all.WriteByte(byte(c + 1))
		}
		odd := all.String() + "\n'é漢🙂 $HOME `id` \\n %s\n\n"
		env := map[string]string{"A": odd, "PATH": "/bin:/usr/bin", "EMPTY": "", "LONG": strings.Repeat("y", 70000), "IFS": "x", "sbx_h": "1",
			"LINES": "\n\n", "PS1": "#", "HOME": "/h"}
		r := p.must(t, extensions.ExecRequest{Command: []string{"/bin/sh", "-c",
			`printf '<%s>' "$@"; printf '%s' "$A" >env; cat >in; cat <&0; pwd; exit 3`, "sh", odd, "", "-n", "*", "."},
			Env: env, Stdin: strings.NewReader(odd + "\x00\xff"), Dir: "."})
		if want := "<" + odd + "><><-n><*><.>" + p.Dir + "\n"; string(r.Stdout) != want || r.ExitCode != 3 || len(r.Stderr) > 0 {
			t.Errorf("exit %d, printed %q, %q", r.ExitCode, r.Stdout, r.Stderr)
		}
		for name, want := range map[string]string{"env": odd, "in": odd + "\x00\xff"} {
			if got, err := os.ReadFile(filepath.Join(p.Dir, name)); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		r = p.must(t, extensions.ExecRequest{Command: []string{"/bin/cat", "/proc/self/environ"}, Env: env})
		for name, want := range env {
			if !strings.Contains("\x00"+string(r.Stdout), "\x00"+name+"="+want+"\x00") {
				t.Errorf("%s is not as given in %.300q", name, r.Stdout)
			}
		}
		for _, kept := range []string{"limit=mine", "code=mine", "mark=mine"} {
			if !strings.Contains(string(r.Stdout), kept) {
				t.Errorf("%s of the image is gone from %.300q", kept, r.Stdout)
			}
		}
	})
}

func TestAnExitIsTheCommands(t *testing.T) {
	t.Parallel()
	inEveryShell(t, func(t *testing.T, p place) {
		for _, code := range []int{0, 1, 7, 97, 126, 127, 255} {
			if r := p.must(t, extensions.ExecRequest{Shell: fmt.Sprintf("exit %d", code)}); r.ExitCode != code || len(r.Stdout)+len(r.Stderr) > 0 {
				t.Errorf("exit %d instead of %d, %q %q", r.ExitCode, code, r.Stdout, r.Stderr)
			}
		}
		if r := p.must(t, extensions.ExecRequest{Shell: "kill -9 $$"}); r.ExitCode != 137 || len(r.Stderr) > 0 {
			t.Errorf("killed: exit %d, %q", r.ExitCode, r.Stderr)
		}
		if err := os.WriteFile(filepath.Join(p.Dir, "plain"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		for program, want := range map[string]int{"no-such-program": 127, "/no/such": 127, filepath.Join(p.Dir, "plain"): 126} {
			if r := p.must(t, extensions.ExecRequest{Command: []string{program}}); r.ExitCode != want || len(r.Stderr) == 0 {
				t.Errorf("%s: exit %d, %q", program, r.ExitCode, r.Stderr)
			}
		}
		// What a terminal or a script sends to stop it works: nothing is ignored but what the one who started the test
		// ignores, as nohup does; a shell cannot reset that.
		own, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		inherited := maskOf(t, own, "SigIgn")
		r := p.must(t, extensions.ExecRequest{Command: []string{"/bin/grep", "^Sig[IB]", "/proc/self/status"}})
		if blocked := maskOf(t, r.Stdout, "SigBlk"); blocked != 0 {
			t.Errorf("the command begins with signals blocked: %x", blocked)
		}
		if ignored := maskOf(t, r.Stdout, "SigIgn") &^ inherited; ignored != 0 {
			t.Errorf("the command begins with signals ignored: %x", ignored)
		}
	})
}

// maskOf is a set of signals in what the kernel says of a process.
func maskOf(t *testing.T, status []byte, name string) uint64 {
	t.Helper()
	found := regexp.MustCompile(name + `:\t([0-9a-f]{16})`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no %s: %s", name, status)
	}
	mask, err := strconv.ParseUint(string(found[1]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return mask
}

func TestAFolderThatIsNotThereRunsNothing(t *testing.T) {
	t.Parallel()
	inEveryShell(t, func(t *testing.T, p place) {
		r, err := p.run(t, extensions.ExecRequest{Shell: "echo ran", Dir: "no/such"})
		if !extensions.IsKind(err, extensions.KindInvalid) || extensions.FieldOf(err) != "dir" || len(r.Stdout) > 0 {
			t.Errorf("%v, %q", err, r.Stdout)
		}
	})
}

// A command that does not read, one that ends by itself and one that is quiet all end at once.
func TestNothingWaitsForTheLimit(t *testing.T) {
	t.Parallel()
	inEveryShell(t, func(t *testing.T, p place) {
		begun := time.Now()
		p.must(t, extensions.ExecRequest{Command: []string{"/bin/true"}, Stdin: bytes.NewReader(make([]byte, 4<<20)), Timeout: time.Minute})
		in, keep := io.Pipe()
		defer func() { _ = keep.Close() }()
		p.must(t, extensions.ExecRequest{Command: []string{"/bin/true"}, Stdin: in, Timeout: time.Minute})
		r := p.must(t, extensions.ExecRequest{Shell: "/bin/sleep 50 & echo on", Timeout: time.Minute})
		if string(r.Stdout) != "on\n" {
			t.Errorf("printed %q", r.Stdout)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("they took %s", took)
		}
		p.end(t)
	})
}

// end kills what a test left running in the place's folder, by the folder's name.
func (p place) end(t *testing.T) {
	t.Helper()
	for _, pid := range p.processes(t) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// processes lists those that run in the place's folder.
func (p place) processes(t *testing.T) []int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == p.Dir {
			var pid int
			_, _ = fmt.Sscanf(l, "/proc/%d/", &pid)
			all = append(all, pid)
		}
	}
	return all
}

func TestTheLimitEndsAllThatACommandBegan(t *testing.T) {
	t.Parallel()
	inEveryShell(t, func(t *testing.T, p place) {
		t.Cleanup(func() { p.end(t) })
		loop := `trap "" TERM HUP INT; while :; do /bin/sleep 0.2; done`
		r, err := p.run(t, extensions.ExecRequest{Timeout: 1200 * time.Millisecond,
			Shell: `printf early; /usr/bin/setsid sh -c '` + loop + `' & /usr/bin/env -i /usr/bin/setsid /bin/sh -c '` + loop +
				`' & (/bin/sh -c '` + loop + `' &) ; /bin/sleep 60`, Env: map[string]string{"PATH": "/bin"}})
		if !extensions.IsKind(err, extensions.KindTimeout) || string(r.Stdout) != "early" {
			t.Errorf("%v, %q", err, r.Stdout)
		}
		for range 50 {
			if len(p.processes(t)) == 0 {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("%d processes still run", len(p.processes(t)))
	})
}

func TestWhoGivesUpEndsTheCommand(t *testing.T) {
	t.Parallel()
	inEveryShell(t, func(t *testing.T, p place) {
		t.Cleanup(func() { p.end(t) })
		ctx, cancel := context.WithCancel(t.Context())
		began := &cue{do: cancel}
		_, err := execwire.Run(ctx, extensions.ExecRequest{Shell: "echo began; exec /bin/sleep 60", Stdout: began}, execwire.Inside(p.Dir, p.Transport))
		if !extensions.IsKind(err, extensions.KindInterrupted) {
			t.Errorf("%v", err)
		}
		for range 50 {
			if len(p.processes(t)) == 0 {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error("it still runs")
	})
}

// cue acts at the first write.
type cue struct {
	once sync.Once
	do   func()
}

func (c *cue) Write(p []byte) (int, error) {
	c.once.Do(c.do)
	return len(p), nil
}

func TestACommandCannotEndItsOwnSupervision(t *testing.T) {
	t.Parallel()
	inEveryShell(t, func(t *testing.T, p place) {
		r := p.must(t, extensions.ExecRequest{Shell: "trap 'echo caught; exit 4' TERM; kill 0; echo on"})
		if string(r.Stdout) != "caught\n" || r.ExitCode != 4 {
			t.Errorf("%q, exit %d", r.Stdout, r.ExitCode)
		}
	})
}

func TestWithoutAShellItSaysSo(t *testing.T) {
	t.Parallel()
	p := place{execwiretest.Place{Shell: []string{"/no/such/shell"}, Dir: t.TempDir()}}
	_, err := p.run(t, extensions.ExecRequest{Command: []string{"/bin/true"}})
	if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), "shell") || extensions.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
	p.Shell = []string{"/bin/false"}
	if _, err = p.run(t, extensions.ExecRequest{Command: []string{"/bin/true"}}); !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Errorf("a program that is no shell: %v", err)
	}
}

func TestVariablesThatNoShellHoldsAreRefused(t *testing.T) {
	t.Parallel()
	p := place{execwiretest.Place{Shell: []string{"/bin/sh"}, Dir: t.TempDir()}}
	for _, name := range []string{"dotted.name", "1st", "UID", "PPID"} {
		_, err := p.run(t, extensions.ExecRequest{Command: []string{"/bin/true"}, Env: map[string]string{name: "canary"}})
		if !extensions.IsKind(err, extensions.KindUnsupported) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What breaks before the command was handed over is the transport's to say; after that nobody knows.
func TestABrokenTransport(t *testing.T) {
	t.Parallel()
	broken := func(read bool) execwire.Transport {
		return func(_ context.Context, p execwire.Process) (int, error) {
			if read {
				_, _ = io.Copy(io.Discard, p.Stdin)
			}
			return 0, extensions.Errorf(extensions.KindUnreachable, "broken")
		}
	}
	for read, want := range map[bool]extensions.Kind{false: extensions.KindUnreachable, true: extensions.KindIndeterminate} {
		if _, err := execwire.Run(t.Context(), extensions.ExecRequest{Shell: "x"}, execwire.Inside("", broken(read))); !extensions.IsKind(err, want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	calls := 0
	hung := func(ctx context.Context, _ execwire.Process) (int, error) {
		if calls++; calls == 1 {
			<-ctx.Done()
		}
		return 0, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := execwire.Run(ctx, extensions.ExecRequest{Shell: "x"}, execwire.Inside("", hung)); !extensions.IsKind(err, extensions.KindTimeout) {
		t.Errorf("a transport that hangs: %v", err)
	}
}

// Programs inside do not know the nonce: what looks like a frame is output.
func TestAFrameOfTheCommandsIsOutput(t *testing.T) {
	t.Parallel()
	p := place{execwiretest.Place{Shell: []string{"/bin/sh"}, Dir: t.TempDir(), Env: os.Environ()}}
	forged := "\x1e" + execwire.NewNonce() + `{"exit":0}` + "\x1e"
	r := p.must(t, extensions.ExecRequest{Command: []string{"sh", "-c", `printf %s "$1" >&2; printf %s "$1"; exit 9`, "sh", forged}})
	if string(r.Stdout) != forged || string(r.Stderr) != forged || r.ExitCode != 9 {
		t.Errorf("exit %d: %q, %q", r.ExitCode, r.Stdout, r.Stderr)
	}
}

// Neither the words nor the variables of a command are in the command line of anything but the command.
func TestNothingOfACommandIsInTheCommandLine(t *testing.T) {
	t.Parallel()
	var lines []string
	p := place{execwiretest.Place{Shell: []string{"/bin/sh"}, Dir: t.TempDir(), Env: os.Environ()}}
	spy := func(ctx context.Context, pr execwire.Process) (int, error) {
		lines = append(lines, strings.Join(pr.Argv, " "))
		return p.Transport(ctx, pr)
	}
	_, err := execwire.Run(t.Context(), extensions.ExecRequest{Command: []string{"true", "canary-word"}, Env: map[string]string{"A": "canary-value"}},
		execwire.Inside("", spy))
	if err != nil || len(lines) != 1 || strings.Contains(lines[0], "canary") {
		t.Errorf("%v: %q", err, lines)
	}
}
