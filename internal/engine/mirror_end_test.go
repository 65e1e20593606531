package engine_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// What has no place on this side is kept as an archive and told; the sandbox
// ends all the same.
func TestADestroyIsNotHeldUpByWhatCannotBeBroughtBack(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		inside string
		here   func(dir string) error
		told   string
	}{
		"the folder is gone": {"echo 2 >a.txt", os.RemoveAll, "does not exist"},
		"a folder is in the way": {"echo 2 >a.txt; echo 1 >new",
			func(dir string) error { return os.MkdirAll(filepath.Join(dir, "new", "x"), 0o755) }, "new"},
		"it would run on this side": {"mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; echo 2 >a.txt", func(string) error { return nil },
			".git/hooks/pre-commit"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			dir := folder(t, map[string]string{"a.txt": "1\n"})
			s := b.create(engine.Request{Profile: "profile.mirror-local", Name: "one", Inputs: map[string]any{"repo": dir}})
			b.sh(s.Receipt, c.inside)
			if err := c.here(dir); err != nil {
				t.Fatal(err)
			}
			report, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			kept := filepath.Join(b.StateDir, "kept", string(s.ID)+".tar")
			if len(report.Notices) != 1 || !strings.Contains(report.Notices[0].Detail, c.told) || !strings.Contains(report.Notices[0].Detail, kept) {
				t.Errorf("notices: %v", report.Notices)
			}
			info, err := os.Stat(kept)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("the sandbox's copy: %v, %v", info, err)
			}
			if out, err := exec.CommandContext(t.Context(), "tar", "-xOf", kept, "a.txt").Output(); string(out) != "2\n" {
				t.Errorf("a.txt in it holds %q, %v", out, err)
			}
			if left := b.left(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			b.clean()
		})
	}
}

// What an earlier end of the same sandbox kept is somebody's work, too.
func TestWhatWasKeptBeforeStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := folder(t, map[string]string{"a.txt": "1\n"})
	s := b.create(engine.Request{Profile: "profile.mirror-local", Name: "one", Inputs: map[string]any{"repo": dir}})
	earlier := filepath.Join(b.StateDir, "kept", string(s.ID)+".tar")
	if err := errors.Join(os.MkdirAll(filepath.Dir(earlier), 0o700), os.WriteFile(earlier, []byte("earlier"), 0o600),
		os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	report, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	later := strings.TrimSuffix(earlier, ".tar") + "-2.tar"
	if len(report.Notices) != 1 || !strings.Contains(report.Notices[0].Detail, later) {
		t.Errorf("notices: %v", report.Notices)
	}
	if got := read(t, filepath.Dir(earlier), filepath.Base(earlier)); got != "earlier" {
		t.Errorf("what was kept before is %.20q now", got)
	}
	if _, err := os.Stat(later); err != nil {
		t.Error(err)
	}
	b.clean()
}

// The names, holes and modes that a program makes come back, byte for byte.
func TestAMirrorBringsBackWhatAProgramCanMake(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: names of any bytes, and holes")
	}
	b := newBench(t)
	dir := folder(t, map[string]string{"a.txt": "1\n", "caf\xe9\n": "2\n"})
	if err := os.Truncate(filepath.Join(dir, "a.txt"), 1<<40); err != nil {
		t.Fatal(err)
	}
	s := b.create(engine.Request{Profile: "profile.mirror-local", Name: "one", Inputs: map[string]any{"repo": dir}})
	b.sh(s.Receipt, `truncate -s 1T hole; echo shut >shut; chmod 0 shut; mv "$(printf 'caf\351\n.')" x 2>/dev/null; mv caf* "$(printf '\377')"`)
	report, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{})
	if err != nil || len(report.Notices) > 0 {
		t.Fatalf("%v, %v", report, err)
	}
	if read(t, dir, "\xff") != "2\n" || read(t, dir, "shut") != "shut\n" {
		t.Errorf("%q, %q", read(t, dir, "\xff"), read(t, dir, "shut"))
	}
	if _, err := os.Lstat(filepath.Join(dir, "caf\xe9\n")); !os.IsNotExist(err) {
		t.Errorf("what was renamed is still here: %v", err)
	}
	for _, name := range []string{"a.txt", "hole"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != 1<<40 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	b.clean()
}
