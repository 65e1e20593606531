package composessh

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// modes lists files and folders below the root that their owner alone does not
// have, but for what is the stack's own: workspace and bundle.
func (s *site) modes(t testing.TB) (open []string) {
	t.Helper()
	must(t, filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // a file of the loop's that lives for a moment
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "workspace" || d.Name() == "bundle") {
			return fs.SkipDir
		}
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
			open = append(open, path+" "+info.Mode().String())
		}
		return nil
	}))
	return open
}

func TestOnlyTheLoginReadsASandboxsFolder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	one := s.spec(t, exttest.WithSecret("TOKEN", "secret"), exttest.With(func(sp *extensions.Spec) { sp.Instructions = "Be kind." }))
	two := s.stack(t, threeServices, exttest.With(func(sp *extensions.Spec) {
		sp.Instructions = "Be kind."
		sp.Compose.Bundle, sp.Compose.BundleSource = "bundle", sp.Workspace.Source
		sp.Workspace.Source = newFolder(t, map[string]string{"page": "hello"})
	}))
	for _, spec := range []extensions.Spec{one, two} {
		h := s.provision(t, b, spec)
		// What is there is more than what a create always writes.
		for _, name := range []string{"model.json", "services.json", "reaper.sh", "manifest", "lease"} {
			if _, err := os.Stat(filepath.Join(s.root, string(h.ID), name)); err != nil {
				t.Error(err)
			}
		}
	}
	if open := s.modes(t); len(open) > 0 {
		t.Errorf("open to others: %s", strings.Join(open, "\n"))
	}
	info, err := os.Stat(filepath.Join(s.root, string(two.ID), "workspace", "page"))
	must(t, err)
	if info.Mode().Perm() != 0o666 {
		t.Errorf("the workspace's file is %s", info.Mode())
	}
	info, err = os.Stat(filepath.Join(s.root, string(two.ID), "bundle", "compose.yaml"))
	must(t, err)
	if info.Mode().Perm() != 0o644 {
		t.Errorf("the bundle's file is %s", info.Mode())
	}
}
