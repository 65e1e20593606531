package owned_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
)

const childEnv = "SANDBOXER_TEST_OWNER"

// TestMain is also the process that owns a folder and a lock until it is killed.
func TestMain(m *testing.M) {
	if parent := os.Getenv(childEnv); parent != "" {
		f, err := owned.NewFolder(parent)
		if err == nil {
			err = os.WriteFile(filepath.Join(f.Path, "part"), []byte("half"), 0o600)
		}
		if err == nil {
			err = os.MkdirAll(filepath.Join(f.Path, "shut", "in"), 0o700)
		}
		if err == nil {
			err = os.Chmod(filepath.Join(f.Path, "shut"), 0)
		}
		if err == nil {
			_, err = owned.Lock(context.Background(), filepath.Join(parent, "sync-1.lock"))
		}
		if err != nil {
			os.Exit(3)
		}
		_, _ = os.Stdout.WriteString("ready\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func owner(t *testing.T, parent string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+parent)
	_, err = cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	_, err = io.ReadFull(out, make([]byte, len("ready\n")))
	must(t, err)
	return cmd
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestWhatAKilledProcessOwnedIsSwept(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	must(t, os.WriteFile(filepath.Join(parent, "other.lock"), nil, 0o600))
	cmd := owner(t, parent)
	owned.Sweep(parent, "sync-*.lock")
	if got := names(t, parent); len(got) != 4 {
		t.Errorf("of a living owner: %v", got)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	owned.Sweep(parent, "sync-*.lock")
	if got := names(t, parent); len(got) != 1 || got[0] != "other.lock" {
		t.Errorf("of a dead owner: %v", got)
	}
}

func TestWhatItsOwnerClosesIsGone(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	f, err := owned.NewFolder(filepath.Join(parent, "new", "below"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(f.Path, "part"), nil, 0o600))
	must(t, f.Close())
	if got := names(t, filepath.Join(parent, "new", "below")); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

func TestOneAtATimeHoldsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sync-1.lock")
	var inside atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				f, err := owned.Lock(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold it", n)
				}
				if held, err := owned.Locked(path); err != nil || !held {
					t.Errorf("held: %v, %v", held, err)
				}
				if other, err := owned.TryLock(path); err != nil || other != nil {
					t.Errorf("a second one: %v, %v", other, err)
				}
				inside.Add(-1)
				if err := f.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if held, err := owned.Locked(path); err != nil || held {
		t.Errorf("held after all: %v, %v", held, err)
	}
}

func TestWhoWaitsGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sync-1.lock")
	f, err := owned.Lock(t.Context(), path)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := owned.Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hold: %v", err)
	}
	must(t, f.Release())
}

// Folders are made and swept at the same time: nobody's goes while it lives.
func TestSweepingTakesNothingFromTheLiving(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for ctx.Err() == nil {
			owned.Sweep(parent)
		}
	})
	for range 100 {
		f, err := owned.NewFolder(parent)
		must(t, err)
		if err := os.WriteFile(filepath.Join(f.Path, "part"), nil, 0o600); err != nil {
			t.Error(err)
		}
		must(t, f.Close())
	}
	stop()
	sweeping.Wait()
	if got := names(t, parent); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// Between a look at a file that nobody holds yet and its removal, its owner may lock it.
func TestClearingTakesNothingFromTheLiving(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var clearing sync.WaitGroup
	for range 4 {
		clearing.Go(func() {
			for ctx.Err() == nil {
				files, _ := os.ReadDir(parent)
				for _, f := range files {
					if _, err := owned.Clear(filepath.Join(parent, f.Name())); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for i, locked := 0, 0; locked < 3000; i++ {
		path := filepath.Join(parent, fmt.Sprintf("%d.lock", i))
		f, err := owned.TryLock(path)
		must(t, err)
		if f == nil {
			continue
		}
		locked++
		for range 3 { // what was looked at before that is removed by now
			runtime.Gosched()
			if held, err := owned.Clear(path); err != nil || !held {
				t.Errorf("file %d: held: %v, %v", i, held, err)
			}
		}
		must(t, f.Release())
	}
	stop()
	clearing.Wait()
	must(t, os.WriteFile(filepath.Join(parent, "dead.lock"), nil, 0o600))
	for range 4 {
		clearing.Go(func() {
			if held, err := owned.Clear(filepath.Join(parent, "dead.lock")); err != nil || held {
				t.Errorf("of the dead: held: %v, %v", held, err)
			}
		})
	}
	clearing.Wait()
	if got := names(t, parent); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}
