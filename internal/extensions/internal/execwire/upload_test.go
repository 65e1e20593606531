//go:build unix

package execwire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// machine has the calls of a place without streams, on this machine, and a record of its command lines.
type machine struct {
	dir string

	mu    sync.Mutex
	lines []string
	rooms []string
	// fail, if set, may replace the outcome of a call that was done.
	fail func(line string) error
}

func (m *machine) calls() execwire.Calls {
	return execwire.Calls{
		Put: func(_ context.Context, files ...execwire.File) error {
			for _, f := range files {
				to, err := os.Create(f.Path)
				if err == nil {
					_, err = io.Copy(to, f.Content)
					err = errors.Join(err, to.Close())
				}
				if err != nil {
					return err
				}
			}
			return m.outcome("put")
		},
		Get: func(_ context.Context, path string, w io.Writer) error {
			b, err := os.ReadFile(path)
			if err == nil {
				_, err = w.Write(b)
			}
			return errors.Join(err, m.outcome("get"))
		},
		Run: func(_ context.Context, user string, argv ...string) (int, string, error) {
			if user != "" {
				return 0, "", extensions.Errorf(extensions.KindUnsupported, "no users")
			}
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir = m.dir
			out, err := cmd.Output()
			if cmd.ProcessState == nil {
				return 0, "", err
			}
			return cmd.ProcessState.ExitCode(), "noise\n" + string(out), m.outcome(strings.Join(argv, " "))
		},
	}
}

func (m *machine) outcome(line string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, line)
	if rest, ok := strings.CutPrefix(line, "mkdir -m 700 "); ok {
		m.rooms = append(m.rooms, rest)
	}
	if m.fail != nil {
		return m.fail(line)
	}
	return nil
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{dir: t.TempDir()}
	t.Cleanup(func() {
		for _, room := range m.rooms {
			if _, err := os.Stat(room); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", room, err)
			}
		}
	})
	return m
}

func (m *machine) run(t *testing.T, req extensions.ExecRequest) (extensions.ExecResult, error) {
	t.Helper()
	return execwire.Run(t.Context(), req, execwire.Inside(m.dir, m.calls().Transport))
}

func TestACommandWithoutStreamsIsByteExact(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	in := make([]byte, 5<<20)
	for i := range in {
		in[i] = byte(i * 7)
	}
	var live bytes.Buffer
	r, err := m.run(t, extensions.ExecRequest{Shell: `cat; printf '%s|%s' "$1" "$CANARY" >&2; exit 7`, Stdin: bytes.NewReader(in), Stdout: &live,
		Env: map[string]string{"CANARY": "canary\xff\n' \\0101"}})
	if err != nil || r.ExitCode != 7 || !bytes.Equal(live.Bytes(), in) || string(r.Stderr) != "|canary\xff\n' \\0101" {
		t.Errorf("%v, exit %d, %d bytes, %q", err, r.ExitCode, live.Len(), r.Stderr)
	}
	r, err = m.run(t, extensions.ExecRequest{Command: []string{"sh", "-c", "kill -s INT $$; kill -s QUIT $$; sleep 60"}})
	if err != nil || r.ExitCode != 130 {
		t.Errorf("INT is ignored: %d, %v", r.ExitCode, err)
	}
	if all := strings.Join(m.lines, "\n"); strings.Contains(all, "canary") || strings.Contains(all, "printf") || len(all) == 0 {
		t.Errorf("a command line shows the command:\n%s", all)
	}
}

func TestACommandWithoutStreamsEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r, err := m.run(t, extensions.ExecRequest{Shell: "printf early; sleep 600 & echo $! >pid; wait", Timeout: time.Second})
	if !extensions.IsKind(err, extensions.KindTimeout) || string(r.Stdout) != "early" {
		t.Errorf("%v, %q", err, r.Stdout)
	}
	pid, err := os.ReadFile(filepath.Join(m.dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat"); err == nil && !strings.Contains(string(state), ") Z") {
		t.Errorf("its child lives: %s", state)
	}
}

// A command begins once, however often its beginning is asked for, and lost answers cost nothing of its output.
func TestLostAnswersCostNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	lost := map[string]int{"/bin/sh": 2, "get": 1}
	m.fail = func(line string) error {
		for start, n := range lost {
			if strings.HasPrefix(line, start) && n > 0 {
				lost[start]--
				return extensions.Errorf(extensions.KindIndeterminate, "lost")
			}
		}
		return nil
	}
	r, err := m.run(t, extensions.ExecRequest{Shell: "printf x >>ran; cat ran; printf y >&2"})
	if err != nil || string(r.Stdout) != "x" || string(r.Stderr) != "y" {
		t.Errorf("%v: %q, %q", err, r.Stdout, r.Stderr)
	}
}

func TestWhatNeverBeganIsToldApartFromWhatMayHave(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]extensions.Kind{"mkdir": extensions.KindUnavailable, "put": extensions.KindUnavailable,
		"/bin/sh": extensions.KindIndeterminate} {
		t.Run(strings.TrimPrefix(step, "/bin/"), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.fail = func(line string) error {
				if strings.HasPrefix(line, step) {
					return extensions.Errorf(extensions.KindIndeterminate, "lost")
				}
				return nil
			}
			calls := m.calls()
			calls.Patience = time.Nanosecond
			_, err := execwire.Run(t.Context(), extensions.ExecRequest{Shell: "printf x >>ran"}, execwire.Inside(m.dir, calls.Transport))
			if !extensions.IsKind(err, want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

func TestWhatAPlaceWithoutStreamsCannotTakeIsRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	calls := m.calls()
	calls.MaxInput = 1 << 20
	run := func(req extensions.ExecRequest) error {
		_, err := execwire.Run(t.Context(), req, execwire.Inside(m.dir, calls.Transport))
		return err
	}
	if err := run(extensions.ExecRequest{Shell: "printf x >ran", Stdin: bytes.NewReader(make([]byte, 2<<20))}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a long input: %v", err)
	}
	if err := run(extensions.ExecRequest{Shell: "printf x >ran", TTY: &extensions.TTY{}}); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("a terminal: %v", err)
	}
	if _, err := os.Stat(filepath.Join(m.dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

// A sandbox that was stopped and started has the command's files, and nothing of the command.
func TestACommandThatIsGoneIsToldAtOnceAndNotBegunAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	ran := filepath.Join(m.dir, "ran")
	looks := 0
	m.fail = func(line string) error {
		if !strings.HasPrefix(line, "/bin/sh ") {
			return nil
		}
		if looks++; looks == 1 {
			killGone(t, m.rooms[0], ran)
		}
		return nil
	}
	_, err := m.run(t, extensions.ExecRequest{Shell: `echo "$$" >>` + ran + `; sleep 600`})
	told := err != nil && (strings.Contains(err.Error(), "gone") || strings.Contains(err.Error(), "without a result"))
	if !extensions.IsKind(err, extensions.KindIndeterminate) || !told || looks != 2 {
		t.Errorf("at look %d, want the one after it went: %v", looks, err)
	}
	time.Sleep(200 * time.Millisecond)
	if text, err := os.ReadFile(ran); err != nil || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("it ran %d times: %v", bytes.Count(text, []byte("\n")), err)
	}
}

// killGone kills what watches over a command, so that nobody tells of its end, then the command.
func killGone(t *testing.T, room, ran string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ran); err == nil {
			break
		}
	}
	out, err := exec.Command("sh", "-c", `read -r session <"$1/pid"; read -r command <"$2"
		for p in /proc/[0-9]*; do
			[ "$(cut -d" " -f6 "$p/stat" 2>/dev/null)" != "$session" ] || [ "${p#/proc/}" = "$command" ] || kill -s KILL "${p#/proc/}"
		done
		kill -s KILL "$command"`, "sh", room, ran).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A vendor that refuses a call answers before it has read the whole body, and what packs the body reads on for a moment.
func TestNothingMoreOfTheInputIsReadOnceACallHasFailed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	calls := m.calls()
	refused := extensions.Errorf(extensions.KindUnauthorized, "no")
	body := make(chan io.Reader, 1)
	calls.Put = func(_ context.Context, files ...execwire.File) error {
		content := files[1].Content
		started := make(chan struct{})
		go func() {
			_, _ = content.Read(make([]byte, 1))
			close(started)
			_, _ = content.Read(make([]byte, 1)) // beside the end of the call
			body <- content
		}()
		<-started
		return refused
	}
	input := strings.NewReader("abcdef")
	if _, err := calls.Transport(t.Context(), execwire.Process{Argv: []string{"cat"}, Stdin: input}); !errors.Is(err, refused) {
		t.Errorf("%v, want the refusal", err)
	}
	content := <-body
	left := input.Len()
	if n, err := content.Read(make([]byte, 1)); n != 0 || err == nil || input.Len() != left {
		t.Errorf("%d bytes were read afterwards: %v", n, err)
	}
}
