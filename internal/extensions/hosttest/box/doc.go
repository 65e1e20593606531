// Package box gives fakes of vendors real sandboxes: a box is a folder that is the root of real processes, with
// the programs of a static busybox, a user id that nothing else on the machine has, and process ids and a /proc
// of its own. Nothing that runs in a box outlives it, or the test process.
//
// A Clock is the machine's time and what a test added to it, for what ends by a vendor's own deadline.
//
// A box is no wall for hostile programs: it has the machine's network, and no limits.
package box

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// noSkipEnv makes a missing program or right a failure, as in CI.
const noSkipEnv = "SANDBOXER_NO_SKIP"

// Shelf is where boxes of one test stand.
type Shelf struct {
	folder  string
	busybox string // a file of the shelf, which all boxes have by a hard link
	ends    sync.WaitGroup
}

// patience is how long killed processes of a shelf's boxes may take to be gone, on a machine however busy.
const patience = time.Minute

// NewShelf returns a shelf below a folder of the test, and skips the test on a machine that cannot have boxes.
func NewShelf(t testing.TB) *Shelf {
	t.Helper()
	skip := t.Skip
	if os.Getenv(noSkipEnv) == "1" {
		skip = t.Fatal
	}
	if why := lacking(); why != "" {
		skip("SKIPPED: a box has root, processes and /proc of its own: " + why)
	}
	at, err := exec.LookPath("busybox")
	if err != nil {
		skip("SKIPPED: the programs in a box are a static busybox's: install busybox-static")
	}
	program, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		skip("SKIPPED: " + at + " is not static: install busybox-static")
	}
	s := &Shelf{folder: scratch(t)}
	t.Cleanup(func() { // before the folder goes, into which they might still write
		gone := make(chan struct{})
		go func() {
			s.ends.Wait()
			close(gone)
		}()
		select {
		case <-gone:
		case <-time.After(patience):
			t.Errorf("processes of boxes are not gone %s after they were killed: somebody started one and does not wait for it", patience)
		}
	})
	s.busybox = s.Path("busybox")
	if err := os.WriteFile(s.busybox, program, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := os.Chmod(s.folder, 0o755); err != nil { //nolint:gosec // the users of boxes pass
		t.Fatal(err)
	}
	return s
}

// Path is a file of the shelf beside its boxes, for what the fake itself keeps.
func (s *Shelf) Path(name string) string { return filepath.Join(s.folder, name) }

// folders are those of a new box.
var folders = map[string]os.FileMode{"/bin": 0o755, "/dev": 0o755, "/etc": 0o755, "/opt": 0o755, "/proc": 0o555, "/run": 0o755,
	"/tmp": 0o777 | os.ModeSticky, "/usr": 0o755, "/usr/bin": 0o755, "/var": 0o755, "/var/tmp": 0o777 | os.ModeSticky}

// SearchPath is where LookPath looks.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Host returns where a path inside lies on this machine. Links are followed as inside, and lead nowhere else.
func (b *Box) Host(at string) string {
	done, left := "/", strings.Split(path.Clean("/"+at), "/")
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		target, err := os.Readlink(b.Root + path.Join(done, name))
		if err != nil || links > 40 {
			done = path.Join(done, name)
			continue
		}
		links++
		if path.IsAbs(target) {
			done = "/"
		}
		left = append(strings.Split(target, "/"), left...)
	}
	return b.Root + done
}

// Itself is Host for the object of that name, even if it is a link.
func (b *Box) Itself(at string) string { return path.Join(b.Host(path.Dir(at)), path.Base(at)) }

// LookPath finds a program inside; one that is nowhere is returned as a path that does not start.
func (b *Box) LookPath(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, dir := range strings.Split(SearchPath, ":") {
		if _, err := os.Stat(b.Host(dir + "/" + name)); err == nil {
			return dir + "/" + name
		}
	}
	return "/" + name
}
