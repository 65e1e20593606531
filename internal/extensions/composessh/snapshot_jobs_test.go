package composessh

import (
	"archive/tar"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

// job is one of the programs for the toolbox, whose places are folders of this test.
func job(t testing.TB, file, name string, places map[string]string) string {
	t.Helper()
	_, text, ok := strings.Cut(shtexttest.Programs(t, scripts[0])[file], "\n"+name+"='\n")
	if !ok {
		t.Fatalf("%s has no %s", file, name)
	}
	text, _, _ = strings.Cut(text, "'\n")
	for place, at := range places {
		text = strings.ReplaceAll(text, "/"+place+"/", at+"/")
		text = strings.ReplaceAll(text, "/"+place+"\"", at+"\"")
	}
	return text
}

// toolPaths are the programs that a host may have: the system's, and busybox's alone.
func toolPaths(t testing.TB) map[string]string {
	t.Helper()
	paths := map[string]string{"system": os.Getenv("PATH")}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return paths
	}
	dir := t.TempDir()
	applets, err := exec.CommandContext(t.Context(), busybox, "--list").Output()
	must(t, err)
	for _, applet := range strings.Fields(string(applets)) {
		if !strings.Contains(applet, "/") {
			must(t, os.Symlink(busybox, filepath.Join(dir, applet)))
		}
	}
	paths["busybox"] = dir
	return paths
}

// What the toolbox does works with the tools of any host: odd names, links, pipes, modes and holes come back, what was
// there before is gone, and hostile archives write nothing beside their folder.
func TestCopiesWithTheToolsOfAnyHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
	for tools, path := range toolPaths(t) {
		for _, shell := range shtexttest.Shells(t) {
			t.Run(tools+"/"+filepath.Base(strings.Join(shell, "-")), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				places := map[string]string{}
				for _, place := range []string{"from", "to", "in", "tree", "seed"} {
					places[place] = filepath.Join(dir, place)
					for _, slot := range []string{"0", "1"} {
						must(t, os.MkdirAll(filepath.Join(places[place], slot), 0o755))
					}
				}
				at, err := exec.LookPath(shell[0])
				must(t, err)
				run := func(name string, args ...string) (string, int) {
					t.Helper()
					cmd := exec.CommandContext(t.Context(), at, append(append(append([]string{}, shell[1:]...), "-c", name, "sh"), args...)...)
					cmd.Env = []string{"PATH=" + path}
					out, err := cmd.CombinedOutput()
					var exit *exec.ExitError
					if err != nil && !errors.As(err, &exit) {
						t.Fatal(err)
					}
					return string(out), cmd.ProcessState.ExitCode()
				}
				take, put := job(t, "parts", "parts_job", places), job(t, "restore", "refill_job", places)
				from, to := filepath.Join(places["from"], "0"), filepath.Join(places["tree"], "0")
				kept := filepath.Join(places["to"], "data")
				must(t, os.WriteFile(filepath.Join(from, "a\nb -> etc"), []byte("deep"), 0o600))
				must(t, os.Link(filepath.Join(from, "a\nb -> etc"), filepath.Join(from, "-hard")))
				must(t, os.Symlink("../../..", filepath.Join(from, "up")))
				must(t, os.Mkdir(filepath.Join(from, ".closed"), 0o700))
				must(t, os.Truncate(mustFile(t, filepath.Join(from, "hole")), 1<<20))
				must(t, os.Symlink(dir, filepath.Join(from, ".sandboxer")))
				mustFile(t, filepath.Join(places["from"], "1", "other"))
				mustFile(t, filepath.Join(to, "former"))
				mustFile(t, kept)
				must(t, os.WriteFile(filepath.Join(places["seed"], "seed.md"), []byte("new"), 0o600))

				out, code := run(take, "1000", kept, from, filepath.Join(places["from"], "1"))
				sizes := strings.Fields(strings.ReplaceAll(out, "size ", ""))
				if code != 0 || len(sizes) != 2 {
					t.Fatalf("taking: code %d, %s", code, out)
				}
				must(t, os.Rename(kept, filepath.Join(places["in"], "data")))
				out, code = run(put, "0:"+sizes[0]+" "+sizes[0]+":"+sizes[1], "1000", `made/\0040x`, `made/\0040x`)
				if code != 0 {
					t.Fatalf("putting: code %d, %s", code, out)
				}
				hard, err := os.ReadFile(filepath.Join(to, "-hard"))
				if err != nil || string(hard) != "deep" {
					t.Errorf("a hard link holds %q: %v", hard, err)
				}
				for name, mode := range map[string]os.FileMode{"a\nb -> etc": 0o600, "up": os.ModeSymlink | 0o777, ".closed": os.ModeDir | 0o700,
					"hole": 0o600, "made/ x": os.ModeDir | 0o777, ".sandboxer/instructions.md": 0o644, "../1/other": 0o600} {
					if info, err := os.Lstat(filepath.Join(to, name)); err != nil || info.Mode() != mode {
						t.Errorf("%q came back as %v: %v", name, info, err)
					}
				}
				for _, name := range []string{filepath.Join(to, "former"), filepath.Join(dir, "instructions.md")} {
					if _, err := os.Lstat(name); err == nil {
						t.Errorf("there is %s", name)
					}
				}
				if out, code := run(put, "0:"+sizes[0], "1000", "up/etc", ""); code != 50 || !strings.Contains(out, "./up") {
					t.Errorf("a bind through a link: code %d, %s", code, out)
				}
				if _, code := run(take, "3", kept, from); code != 47 {
					t.Errorf("too many files to take: code %d", code)
				}
				if _, code := run(put, "0:"+sizes[0], "3"); code != 49 {
					t.Errorf("too many files to put: code %d", code)
				}
				for _, name := range []string{dir + "/escaped", "../escaped", "x/../../escaped"} {
					archive := tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: name})
					must(t, os.WriteFile(filepath.Join(places["in"], "data"), archive, 0o600))
					if out, code := run(put, "0:"+strconv.Itoa(len(archive)), "1000"); tools == "system" && shell[0] != "busybox" && code != 49 {
						t.Errorf("%s: code %d, %s", name, code, out)
					}
					for _, at := range []string{dir, places["tree"]} {
						if _, err := os.Lstat(filepath.Join(at, "escaped")); err == nil {
							t.Errorf("%s came to %s", name, at)
						}
					}
				}
			})
		}
	}
}

// mustFile makes an empty file.
func mustFile(t testing.TB, name string) string {
	t.Helper()
	must(t, os.WriteFile(name, nil, 0o600))
	return name
}
