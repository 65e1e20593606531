package composessh

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// severalServices is a stack of which no service is the default one's like: web
// is, db runs as another user, bare has neither sh nor tar, done has ended.
const severalServices = `
services:
  web: {image: IMAGE, command: [sleep, "100000"], init: true, volumes: [".:/workspace"]}
  db: {image: IMAGE, command: [httpd, -f, -p, "127.0.0.1:8080", -h, /etc], user: sandbox}
  bare: {image: BARE, command: [/busybox, sleep, "100000"], user: "4711:4712"}
  done: {image: IMAGE, command: ["true"]}
`

// bareImage holds one program, and nothing that could unpack or ask.
func bareImage(t testing.TB) string {
	t.Helper()
	hosttest.Docker(t)
	prog, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Skip("the test needs a static busybox at /bin/busybox")
	}
	name := "sandboxer-test-bare-" + strings.ToLower(rand.Text()[:12]) + ":latest"
	cmd := exec.CommandContext(t.Context(), "docker", "import", "-", name)
	cmd.Stdin = bytes.NewReader(newTar(t, entry{name: "busybox", mode: 0o755, body: string(prog)}))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("docker import: %v: %s", err, out)
	}
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	return name
}

// several makes the stack of severalServices.
func (s *site) several(t testing.TB, b *Backend, service string) extensions.Handle {
	t.Helper()
	file := strings.ReplaceAll(severalServices, "BARE", bareImage(t))
	return s.provision(t, b, s.stack(t, file, exttest.With(func(sp *extensions.Spec) { sp.Compose.Service = service })))
}

func run(t testing.TB, b *Backend, h extensions.Handle, req extensions.ExecRequest) extensions.ExecResult {
	t.Helper()
	r, err := b.Exec(t.Context(), h, req)
	if err != nil {
		t.Fatalf("exec %q%q: %v", req.Command, req.Shell, err)
	}
	return r
}

func wantKind(t testing.TB, what string, err error, kind extensions.Kind, words ...string) {
	t.Helper()
	if !extensions.IsKind(err, kind) {
		t.Errorf("%s: %v, want %s", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v, want it to say %q", what, err, w)
		}
	}
}

func TestCommandsReachEveryService(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "web")
	for service, want := range map[string]string{"": "/workspace root", "web": "/workspace root", "db": "/ sandbox"} {
		r := run(t, b, h, extensions.ExecRequest{Service: service, Shell: `echo "$(pwd) $(id -un)"`})
		if got := strings.TrimSpace(string(r.Stdout)); got != want {
			t.Errorf("service %q: %q, want %q", service, got, want)
		}
	}
	_, err := b.Exec(t.Context(), h, extensions.ExecRequest{Service: "nope", Command: []string{"true"}})
	wantKind(t, "an unknown service", err, extensions.KindInvalid, "web", "db", "bare", "done")
	_, err = b.Exec(t.Context(), h, extensions.ExecRequest{Service: "done", Command: []string{"true"}})
	wantKind(t, "a service that has ended", err, extensions.KindConflict, "done", "exited")
	_, err = b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"true"}, Dir: "not/there"})
	wantKind(t, "a folder that is not there", err, extensions.KindInvalid, "not/there")
	r := run(t, b, h, extensions.ExecRequest{Service: "bare", Command: []string{"/busybox", "id", "-u"}})
	if got := string(r.Stdout); got != "4711\n" {
		t.Errorf("in an image without sh: %q, %q", got, r.Stderr)
	}
	// A command that says what docker says is a command all the same.
	r = run(t, b, h, extensions.ExecRequest{Shell: `echo "Error response from daemon: no" >&2; printf 'OCI runtime exec failed: x'; exit 1`})
	if r.ExitCode != 1 || !strings.HasPrefix(string(r.Stderr), "Error response") || !strings.HasPrefix(string(r.Stdout), "OCI") {
		t.Errorf("a command's own words: %d, %q, %q", r.ExitCode, r.Stdout, r.Stderr)
	}
}

func TestWithoutADefaultServiceOneMustBeNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "")
	_, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"true"}})
	wantKind(t, "no service named", err, extensions.KindInvalid, "web", "db")
}

func TestVariablesArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	env := map[string]string{"PATH": "/bin:/usr/bin:/mine", "HOME": "/h", "LD_PRELOAD_X": "1", "DOCKER_HOST": "unix:///nowhere", "EMPTY": "",
		"SPACES":      "  two  ",
		"dotted.name": "x", "QUOTES": `a'b"c$HOME` + "`id`", "LINES": "one\ntwo\n", "id": "mine\nown", "container": "x\ny", "CR": "a\r",
		"LONG": strings.Repeat("y", 70000)}
	r := run(t, b, h, extensions.ExecRequest{Command: []string{"env", "-0"}, Env: env})
	if len(r.Stdout) == 0 { // busybox without -0
		r = run(t, b, h, extensions.ExecRequest{Command: []string{"cat", "/proc/self/environ"}, Env: env})
	}
	got := map[string]string{}
	for _, line := range strings.Split(string(r.Stdout), "\x00") {
		name, value, _ := strings.Cut(line, "=")
		got[name] = value
	}
	for name, want := range env {
		if got[name] != want {
			t.Errorf("%s is %.60q, want %.60q", name, got[name], want)
		}
	}
	_, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"true"}, Env: map[string]string{"LD_PRELOAD": "/x\n/y"}})
	wantKind(t, "several lines for the loader", err, extensions.KindUnsupported, "LD_PRELOAD")
}

func TestEveryCharacterOfAnArgumentArrives(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	var all strings.Builder
	for c := rune(1); c < 0x500; c++ {
		all.WriteRune(c)
	}
	r := run(t, b, h, extensions.ExecRequest{Command: []string{"printf", "%s", all.String()}})
	if string(r.Stdout) != all.String() {
		t.Errorf("%q came back", r.Stdout)
	}
	// Docker's API is JSON: other bytes would arrive as something else.
	for what, req := range map[string]extensions.ExecRequest{
		"argument": {Command: []string{"printf", "\xff"}}, "variable": {Command: []string{"true"}, Env: map[string]string{"A": "\xff"}},
	} {
		_, err := b.Exec(t.Context(), h, req)
		wantKind(t, what, err, extensions.KindUnsupported, "UTF-8")
	}
}

// What a command leaves behind is found by its mark, its parents and its
// session, whatever it did to get away.
func TestWhatGetsAwayIsKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	loop := `trap "" TERM HUP INT; while :; do printf x >>/tmp/$1; sleep 0.2; done`
	script := `setsid sh -c '` + loop + `' a away & env -i setsid sh -c '` + loop + `' a bare & (sh -c '` + loop + `' a child &) ; sleep 60`
	beats := func() string {
		return string(run(t, b, h, extensions.ExecRequest{Shell: "cd /tmp; wc -c away bare child"}).Stdout)
	}
	quiet := func(what string) {
		t.Helper()
		first := beats()
		time.Sleep(time.Second)
		if second := beats(); first != second || !strings.Contains(first, "child") {
			t.Errorf("%s: something still runs: %s then %s", what, first, second)
		}
	}
	res, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: "printf early; " + script, Timeout: 5 * time.Second})
	wantKind(t, "over its time", err, extensions.KindTimeout)
	if string(res.Stdout) != "early" {
		t.Errorf("captured %q", res.Stdout)
	}
	quiet("after the timeout")
	ctx, cancel := context.WithCancel(t.Context())
	out := &lineWaiter{}
	go func() {
		out.await("begun")
		cancel()
	}()
	_, err = b.Exec(ctx, h, extensions.ExecRequest{Shell: script[:len(script)-len("sleep 60")] + "echo begun; sleep 60", Stdout: out})
	wantKind(t, "given up", err, extensions.KindInterrupted)
	quiet("after it was given up")
}

func TestACommandEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	checkCutLines(t, s, b, s.provision(t, b, s.spec(t)))
}

// checkCutLines: a caller that is killed, or that the network took away, cannot
// ask for the end of what it began.
func checkCutLines(t *testing.T, s *site, b *Backend, h extensions.Handle) {
	t.Helper()
	// What a command left in the background goes on without a connection.
	run(t, b, h, extensions.ExecRequest{Shell: `(while :; do printf x >>/tmp/kept; sleep 0.1; done) </dev/null >/dev/null 2>&1 &`})
	defer func() {
		if r := run(t, b, h, extensions.ExecRequest{Shell: `a=$(wc -c </tmp/kept); sleep 1; [ "$a" != "$(wc -c </tmp/kept)" ]`}); r.ExitCode != 0 {
			t.Error("what was left in the background has ended")
		}
	}()
	for what, req := range map[string]extensions.ExecRequest{
		"alone":           {},
		"with input":      {Stdin: strings.NewReader("all of it")},
		"with open input": {Stdin: neverEnding(t)},
		"terminal":        {TTY: &extensions.TTY{Rows: 24, Cols: 80}},
	} {
		begun := make(chan struct{})
		req.Stdout = writerFunc(sync.OnceFunc(func() { close(begun) }))
		req.Shell = `trap "" HUP TERM; echo begun; : >/tmp/beats; while :; do printf x >>/tmp/beats; sleep 0.1; done`
		ended := make(chan error, 1)
		go func() {
			_, err := s.open(t).Exec(context.WithoutCancel(t.Context()), h, req)
			ended <- err
		}()
		<-begun
		s.gate.cut()
		wantKind(t, what, <-ended, extensions.KindIndeterminate)
		quiet := `for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do a=$(wc -c </tmp/beats); sleep 1; [ "$a" != "$(wc -c </tmp/beats)" ] || exit 0; done; exit 1`
		if r := run(t, b, h, extensions.ExecRequest{Shell: quiet}); r.ExitCode != 0 {
			t.Errorf("%s: the command runs on", what)
		}
	}
}

// neverEnding is input that stays open until the test ends.
func neverEnding(t *testing.T) io.Reader {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	return r
}

type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestManyCommandsShareTwoConnections(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"printf", "%s", fmt.Sprint(i)}})
			if err != nil || string(r.Stdout) != fmt.Sprint(i) {
				t.Errorf("command %d: %q, %v", i, r.Stdout, err)
			}
		})
	}
	wg.Wait()
	if n := s.server.Connections(); n > 2 {
		t.Errorf("%d connections were opened", n)
	}
}

func TestATerminalIsAsLargeAsAsked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	sizes := make(chan [2]uint16)
	in, feed := io.Pipe()
	defer func() { _ = feed.Close() }()
	out := &lineWaiter{seen: make(chan string, 100)}
	go func() {
		out.await("24 80")
		sizes <- [2]uint16{50, 132}
		out.await("50 132")
		_, _ = io.WriteString(feed, "quit\n")
	}()
	r := run(t, b, h, extensions.ExecRequest{Stdin: in, Stdout: out, Timeout: time.Minute,
		TTY:   &extensions.TTY{Rows: 24, Cols: 80, Resize: sizes},
		Shell: `test -t 0 || echo none; stty -echo; exec 3<&0; (while :; do stty size <&3; sleep 0.2; done) & read x; echo "got $x"; kill $!`})
	if !r.Merged || !strings.Contains(string(r.Stdout), "got quit") || strings.Contains(string(r.Stdout), "none") {
		t.Errorf("merged %t: %q", r.Merged, r.Stdout)
	}
}

// lineWaiter tells when a stream has shown a text.
type lineWaiter struct {
	mu   sync.Mutex
	text strings.Builder
	seen chan string
}

func (l *lineWaiter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lineWaiter) await(text string) {
	for range 600 {
		l.mu.Lock()
		found := strings.Contains(l.text.String(), text)
		l.mu.Unlock()
		if found {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// hostShell makes the host's sh, and the tools that come with it, another one.
func hostShell(t testing.TB, program string) hosttest.Option {
	t.Helper()
	at, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("this machine has no %s", program)
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Symlink(at, filepath.Join(dir, "sh")))
	login := filepath.Join(dir, "login")
	must(t, os.WriteFile(login, []byte("#!/bin/sh\nPATH="+dir+":$PATH\nexport PATH\nexec sh \"$@\"\n"), 0o755))
	return hosttest.WithShell(login)
}

// What watches a command is told of its end before it listens, and dies of that; and the client may be killed. A shell says so on
// the channel that is the command's own.
func TestNoShellSpeaksForACommand(t *testing.T) {
	t.Parallel()
	text, err := shellFiles.ReadFile("sh/exec.sh")
	must(t, err)
	for docker, want := range map[string]string{
		"exit 0":     `{"exit":0,"timeout":false,"state":"running","service":"web"}`,
		"kill -9 $$": `{"exit":137,"timeout":false,"state":"docker","service":"web"}`,
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\necho heard >&2\n"+docker+"\n"), 0o755))
		for _, shell := range [][]string{{"sh"}, {"bash"}, {"busybox", "sh"}} {
			if _, err := exec.LookPath(shell[0]); err != nil {
				continue
			}
			cmd := exec.CommandContext(t.Context(), shell[0], append(shell[1:], "-c", `
use_root() { :; }; use_box() { :; }; need_tools() { :; }; use_begin() { :; }; inside_path() { :; }
inside_find() { container=c service=web; }
say() { printf "%s" "$1" >&2; }
sbx_watching() { exec sleep 60; }
sbx_expire() { exec sleep 60; }
id= dir= login= mark= input= terminal= environment= exported= mount=
`+string(text))...)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			var said strings.Builder
			cmd.Stderr = &said
			must(t, cmd.Run())
			if said.String() != "heard\n"+want {
				t.Errorf("%s, %s: %q, want %q", shell[0], docker, said.String(), "heard\n"+want)
			}
		}
	}
}

// The scripts that go inside, on hosts with other shells and tools.
func TestEveryShellOfAHostServes(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"busybox", "bash", "dash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, hostShell(t, shell))
			b := s.open(t)
			h := s.several(t, b, "web")
			r := run(t, b, h, extensions.ExecRequest{Shell: `cat; echo "$A|$B"; exit 5`, Stdin: strings.NewReader("in\n"),
				Env: map[string]string{"A": "x", "B": "y\nz"}})
			if string(r.Stdout) != "in\nx|y\nz\n" || r.ExitCode != 5 {
				t.Errorf("%d, %q, %q", r.ExitCode, r.Stdout, r.Stderr)
			}
			_, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: "setsid sleep 50 & sleep 60", Timeout: 700 * time.Millisecond})
			wantKind(t, "over its time", err, extensions.KindTimeout)
			if left := docker(t, "top", string(h.ID)+"-web-1"); strings.Contains(left, "sleep 50") || strings.Contains(left, "sleep 60") {
				t.Errorf("still there: %s", left)
			}
			checkFiles(t, b, h)
			checkLogs(t, b, h)
			checkPorts(t, s, b, h)
		})
	}
}
