package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, dir, name, text)
	}
	return dir
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(b)
}

func (b *bench) sh(rec engine.Receipt, script string) string {
	b.t.Helper()
	res, err := b.Exec(context.Background(), rec, engine.ExecRequest{Shell: script})
	if err != nil || res.ExitCode != 0 {
		b.t.Fatalf("%s: %+v, %v", script, res, err)
	}
	return string(res.Stdout)
}

func TestAMirroredWorkspaceComesBackOnDemandAndOnDestroy(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"profile.mirror", "profile.mirror-local"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			dir := folder(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n", "sub/c.txt": "c\n", "gone.txt": "x\n"})
			s := b.create(engine.Request{Profile: profile, Name: "one", Inputs: map[string]any{"repo": dir}})
			if got := b.sh(s.Receipt, "cat a.txt sub/c.txt"); got != "a\nc\n" {
				t.Fatalf("inside: %q", got)
			}
			b.sh(s.Receipt, "echo a2 > a.txt; echo new > new.txt; rm gone.txt")
			changed, conflicts, err := b.SyncBack(ctx, s.Receipt)
			if err != nil || len(conflicts) > 0 || read(t, dir, "a.txt") != "a2\n" || read(t, dir, "new.txt") != "new\n" ||
				read(t, dir, "b.txt") != "b\n" {
				t.Fatalf("first sync: %v %v %v", changed, conflicts, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "gone.txt")); !os.IsNotExist(err) {
				t.Errorf("gone.txt is still here: %v", err)
			}
			// The second transfer compares with the first, not with the beginning.
			b.sh(s.Receipt, "echo a3 > a.txt")
			if _, conflicts, err := b.SyncBack(ctx, s.Receipt); err != nil || len(conflicts) > 0 || read(t, dir, "a.txt") != "a3\n" {
				t.Fatalf("second sync: %v %v, a.txt is %q", conflicts, err, read(t, dir, "a.txt"))
			}
			b.sh(s.Receipt, "echo theirs > b.txt; echo last > new.txt")
			write(t, dir, "b.txt", "mine\n")
			report, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if read(t, dir, "b.txt") != "mine\n" || read(t, dir, "new.txt") != "last\n" {
				t.Errorf("b.txt is %q, new.txt is %q", read(t, dir, "b.txt"), read(t, dir, "new.txt"))
			}
			if len(report.Conflicts) != 1 || !strings.HasPrefix(report.Conflicts[0], "b.txt") || len(report.Notices) == 0 {
				t.Errorf("conflicts: %v, notices %v", report.Conflicts, report.Notices)
			}
			if _, err := os.Stat(filepath.Join(b.StateDir, "kept", string(s.ID)+".tar")); err != nil {
				t.Errorf("the sandbox's own copy was not kept: %v", err)
			}
			if left := b.left(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			b.clean()
		})
	}
}
