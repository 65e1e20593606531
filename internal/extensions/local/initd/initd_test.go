//go:build unix

package initd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

func TestTheLogKeepsTheEndOfAFlood(t *testing.T) {
	t.Parallel()
	r := newRing()
	line := strings.Repeat("x", 99) + "\n"
	for range 5 * logBytes / len(line) {
		_, _ = r.Write([]byte(line))
	}
	_, _ = r.Write([]byte("last\n"))
	b, offset, _ := r.from(0)
	if len(b) != logBytes || !bytes.HasSuffix(b, []byte("x\nlast\n")) {
		t.Errorf("%d bytes, end %q", len(b), b[len(b)-10:])
	}
	if cap(r.buf) > 4*logBytes {
		t.Errorf("it holds %d bytes", cap(r.buf))
	}
	_, _ = r.Write([]byte("more\n"))
	if b, _, _ := r.from(offset); string(b) != "more\n" {
		t.Errorf("what is new: %q", b)
	}
}

func TestTailCountsLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 1, "c"}, {"a\n", 5, "a\n"}, {"", 1, ""}, {"a\nb\n", 0, "a\nb\n"}} {
		if got := string(tail([]byte(c.in), c.n)); got != c.want {
			t.Errorf("the last %d of %q: %q, want %q", c.n, c.in, got, c.want)
		}
	}
}

func TestProgramsAreFoundAsAShellFindsThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/run": 0o755, "bin/plain": 0o644, "later/plain": 0o755, "here": 0o755} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, mode)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + dir + "/bin:" + dir + "/later"}
	for name, want := range map[string]string{"run": "/bin/run", "plain": "/later/plain", "./here": "/here", dir + "/bin/run": "/bin/run"} {
		if got, err := lookup(name, dir, env); err != nil || got != dir+want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := lookup("plain", dir, []string{"PATH=" + dir + "/bin"}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("not executable: %v", err)
	}
	if _, err := lookup("nothing", dir, env); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not there: %v", err)
	}
}

func TestTheEnvironmentNamesEachVariableOnceTheLaterWins(t *testing.T) {
	t.Parallel()
	c := &session{server: &server{cfg: Config{Env: []string{"A=1", "B=2", "A=3"}}}, req: wire.Request{Env: [][]byte{[]byte("B=4")}, TTY: true}}
	if got := fmt.Sprint(c.env()); got != "[A=3 B=4 TERM=xterm-256color]" {
		t.Error(got)
	}
}

// However late a busy machine lets the init look at its lease again.
func TestALeaseThatIsGoneBeforeTheFirstLookEndsIt(t *testing.T) {
	t.Parallel()
	f, deadline := newLease(t, 3*time.Second)
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if got := (&server{files: Files{Lease: f}}).waitForEnd(deadline, true); got != lease.ReasonRemoved {
		t.Errorf("it ended as %q", got)
	}
}

func TestALeaseThatIsEmptiedBeforeTheFirstLookDoesNotMoveTheDeadline(t *testing.T) {
	t.Parallel()
	f, deadline := newLease(t, time.Second)
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	got := (&server{files: Files{Lease: f}}).waitForEnd(deadline, true)
	if early := time.Until(deadline); got != lease.ReasonExpired || early > time.Millisecond {
		t.Errorf("it ended as %q, %s before the deadline", got, early)
	}
}

func newLease(t *testing.T, life time.Duration) (*os.File, time.Time) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "lease"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	deadline := time.Now().Add(life)
	if err := lease.Write(f, deadline); err != nil {
		t.Fatal(err)
	}
	return f, deadline
}
