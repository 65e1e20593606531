package engine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// A mirror of what is no folder of this machine comes back all the same: into a
// folder of the sandbox's own, which is told, and which an empty one does not leave.
func TestAMirrorWithoutAFolderComesBackToOneOfItsOwn(t *testing.T) {
	t.Parallel()
	repo := filepath.Join(t.TempDir(), "repo")
	write(t, repo, "a.txt", "a\n")
	write(t, repo, "b.txt", "b\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."},
		{"-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"}} {
		c := exec.Command("git", append([]string{"-C", repo}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	for name, c := range map[string]struct {
		inputs map[string]any
		script string
		want   map[string]string
	}{
		"empty": {nil, "mkdir d; echo new >d/new.txt", map[string]string{"d/new.txt": "new\n"}},
		"git": {map[string]any{"repo": "file://" + repo}, "echo a2 >a.txt; echo new >new.txt",
			map[string]string{"a.txt": "a2\n", "b.txt": "b\n", "new.txt": "new\n"}},
		"nothing inside": {nil, "true", nil},
	} {
		for _, profile := range []string{"profile.mirror", "profile.mirror-local"} {
			t.Run(name+" "+profile, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				s := b.create(engine.Request{Profile: profile, Name: "one", Inputs: c.inputs})
				b.sh(s.Receipt, c.script)
				report, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{})
				if err != nil || len(report.Conflicts) > 0 {
					t.Fatalf("%+v, %v", report, err)
				}
				dir := filepath.Join(b.StateDir, "kept", string(s.ID))
				for file, want := range c.want {
					if got := read(t, dir, file); got != want {
						t.Errorf("%s is %q, want %q", file, got, want)
					}
				}
				told := strings.Contains(notices(report.Notices), dir)
				if _, err := os.Stat(dir); os.IsNotExist(err) != (c.want == nil) || told != (c.want != nil) {
					t.Errorf("the folder: %v; told: %v", err, told)
				}
			})
		}
	}
}
