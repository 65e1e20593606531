package openshelltest

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// NoImage is the name of an image that no registry has.
const NoImage = "registry.test/no-such:1"

// furnish gives a box what images have, and the files of its own.
func (s *sandbox) furnish(files map[string]string) error {
	for _, dir := range []string{"/lib", "/sbin", "/usr/local/bin"} {
		if err := os.MkdirAll(s.Root+dir, 0o755); err != nil {
			return err
		}
	}
	for at, text := range files {
		if err := errors.Join(os.MkdirAll(s.Root+path.Dir(at), 0o755), os.WriteFile(s.Root+at, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	return s.Own()
}

func within(at, folder string) bool { return at == folder || strings.HasPrefix(at, folder+"/") }

// protect puts a policy of files in force by their owners, or names a path that is missing. What has both rights may be written.
func (s *sandbox) protect(p *gateway.FilesystemPolicy) (missing string) {
	listed := slices.Concat(p.GetReadOnly(), p.GetReadWrite())
	for _, at := range listed {
		if _, err := os.Stat(s.Host(at)); err != nil {
			return at
		}
	}
	covered := func(at string, by []string) bool {
		return slices.ContainsFunc(by, func(f string) bool { return within(at, f) })
	}
	err := filepath.WalkDir(s.Root, func(real string, d fs.DirEntry, err error) error {
		at := path.Clean("/" + strings.TrimPrefix(real, s.Root))
		switch {
		case err != nil:
			return err
		case covered(at, p.GetReadWrite()):
			return nil
		case at != "/bin/busybox": // a name of the shelf's own program
			if err := os.Lchown(real, 0, 0); err != nil {
				return err
			}
		}
		passed := slices.ContainsFunc(listed, func(f string) bool { return within(f, at) })
		if at == "/" || covered(at, listed) || passed || d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		if d.IsDir() {
			return os.Chmod(real, 0o711) // Landlock lets names be looked up
		}
		return os.Chmod(real, 0o600)
	})
	if err != nil {
		return err.Error()
	}
	return ""
}
