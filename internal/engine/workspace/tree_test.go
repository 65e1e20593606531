package workspace

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// grow makes "dir/", "file=content", "file!=content" (executable) and "link->target" below dir.
func grow(t *testing.T, dir string, nodes ...string) string {
	t.Helper()
	for _, n := range nodes {
		name, rest := n, ""
		for _, sep := range []string{"->", "!=", "="} {
			if before, after, ok := strings.Cut(n, sep); ok {
				name, rest = before, after
				break
			}
		}
		at := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		switch {
		case strings.Contains(n, "->"):
			_ = os.Remove(at)
			must(t, os.Symlink(rest, at))
		case strings.HasSuffix(n, "/"):
			must(t, os.MkdirAll(at, 0o755))
		default:
			must(t, os.WriteFile(at, []byte(rest), 0o644))
			if strings.Contains(n, "!=") {
				must(t, os.Chmod(at, 0o755))
			}
		}
	}
	return dir
}

// tree lists dir as grow takes it.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	out := []string{}
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		switch {
		case err != nil || rel == ".":
			return err
		case d.IsDir():
			out = append(out, rel+"/")
		case d.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(p)
			out = append(out, rel+"->"+target)
		default:
			b, _ := os.ReadFile(p)
			sep := "="
			if info, _ := d.Info(); info.Mode()&0o100 != 0 {
				sep = "!="
			}
			out = append(out, rel+sep+string(b))
		}
		return nil
	}))
	return out
}

// unpacked extracts a source into a new folder.
func unpacked(t *testing.T, s *Source) string {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	r, err := s.Open(t.Context())
	must(t, err)
	defer r.Close()
	_, err = tarstream.Unpack(t.Context(), tarstream.VerifyReader(r, s.Digest()), root, ".", tarstream.Options{})
	must(t, err)
	return dir
}

func packed(t *testing.T, dir string) ([]byte, tarstream.Manifest) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	var b bytes.Buffer
	m, err := tarstream.Pack(t.Context(), &b, root, tarstream.Options{})
	must(t, err)
	return b.Bytes(), m
}

// git runs git in dir as a fixed author.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
