package engine_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// temporary lists what is in the state folder only while something works.
func (b *bench) temporary() []string {
	b.t.Helper()
	var list []string
	for _, dir := range []string{"spool", "unsettled", "local/snapshots"} {
		_ = filepath.WalkDir(filepath.Join(b.StateDir, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && path != filepath.Join(b.StateDir, dir) {
				list = append(list, path)
			}
			return nil
		})
	}
	return list
}

// killedAt carries out an order in a process that is killed as soon as a file
// matching the pattern, which is relative to the state folder, has some bytes.
func (b *bench) killedAt(o order, pattern string) {
	b.t.Helper()
	cmd := b.driver(o)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		found, err := filepath.Glob(filepath.Join(b.StateDir, pattern))
		if err != nil {
			b.t.Fatal(err)
		}
		if len(found) > 0 {
			if info, err := os.Stat(found[0]); err == nil && info.Size() > 0 {
				break
			}
		}
		if time.Now().After(end) {
			b.t.Errorf("no %s appears", pattern)
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(b.temporary()) == 0 {
		b.t.Fatalf("the process was not killed while it worked")
	}
}

func TestAKillWhileAWorkspaceComesBackLeavesNothingForLong(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, next := range []string{"create", "destroy", "sweep"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			dir := folder(t, map[string]string{"a.txt": "a\n"})
			s := b.create(engine.Request{Profile: "profile.mirror-local", Name: "one", TTL: "10m", Inputs: map[string]any{"repo": dir}})
			b.sh(s.Receipt, "head -c 40000000 /dev/urandom > big")
			b.killedAt(order{Do: "destroy", Receipt: s.Receipt}, "spool/run-*/mirror-*.tar")
			switch next {
			case "create":
				_, err := b.again(order{Do: "create", Profile: "profile.quickstart", Name: "two"})
				if err != nil {
					t.Fatal(err)
				}
			case "destroy":
				if _, err := b.again(order{Do: "destroy", Receipt: s.Receipt}); err != nil {
					t.Fatal(err)
				}
				if info, err := os.Stat(filepath.Join(dir, "big")); err != nil || info.Size() != 40_000_000 {
					t.Errorf("the work did not come back: %v", err)
				}
			case "sweep":
				if _, err := b.reopen().Sweep(context.Background(), false, nil); err != nil {
					t.Fatal(err)
				}
			}
			if left := b.temporary(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestAKillWhileASnapshotIsTakenLeavesNothingForLong(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, next := range []string{"create", "destroy"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.create(engine.Request{Profile: "profile.quickstart", Name: "one", TTL: "10m"})
			b.sh(s.Receipt, "head -c 40000000 /dev/urandom > big")
			b.killedAt(order{Do: "snapshot", Receipt: s.Receipt}, "local/snapshots/.new-*/*.tar")
			o := order{Do: next, Profile: "profile.quickstart", Name: "two", Receipt: s.Receipt}
			if _, err := b.again(o); err != nil {
				t.Fatal(err)
			}
			if left := b.temporary(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// What somebody still works on is nobody else's to remove.
func TestAnotherRunLeavesAWorkingOneItsFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := folder(t, map[string]string{"a.txt": "a\n"})
	s := b.create(engine.Request{Profile: "profile.mirror-local", Name: "one", TTL: "10m", Inputs: map[string]any{"repo": dir}})
	b.sh(s.Receipt, "head -c 40000000 /dev/urandom > big")
	working := make(chan error, 1)
	go func() {
		_, err := b.reopen().Destroy(context.Background(), s.Receipt, engine.DestroyOptions{})
		working <- err
	}()
	for {
		select {
		case err := <-working:
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(filepath.Join(dir, "big")); err != nil || info.Size() != 40_000_000 {
				t.Errorf("the work did not come back: %v", err)
			}
			if left := b.temporary(); len(left) > 0 {
				t.Errorf("left: %v", strings.Join(left, " "))
			}
			return
		default:
			if _, err := b.reopen().Sweep(context.Background(), false, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
