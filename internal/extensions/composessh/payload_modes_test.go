package composessh

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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

// withModes is a source of empty files and folders, each "NAME MODE".
func withModes(t testing.TB, entries ...string) folder {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, entry := range entries {
		name, octal, _ := strings.Cut(entry, " ")
		mode, err := strconv.ParseInt(octal, 8, 64)
		must(t, err)
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(name, "/") {
			kind = tar.TypeDir
		}
		must(t, w.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Mode: mode}))
	}
	must(t, w.Close())
	return folder{b.Bytes()}
}

func TestOnlyTheLoginReadsASandboxsFolder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	one := s.spec(t, exttest.WithSecret("TOKEN", "secret"), exttest.With(func(sp *extensions.Spec) { sp.Instructions = "Be kind." }))
	two := s.stack(t, strings.Replace(threeServices, `["data:/data"]`, `["data:/data", "./made/here:/here"]`, 1), exttest.With(func(sp *extensions.Spec) {
		sp.Instructions = "Be kind."
		sp.Compose.Bundle, sp.Compose.BundleSource = "bundle", sp.Workspace.Source
		sp.Workspace.Source = withModes(t, "page 644", "run 755", "own 600", "below/ 700", "below/a/ 755", "below/a/tool 701")
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
	for at, want := range map[string]fs.FileMode{"workspace": 0o777, "workspace/page": 0o666, "workspace/run": 0o777, "workspace/own": 0o600,
		"workspace/below": 0o777, "workspace/below/a": 0o777, "workspace/below/a/tool": 0o701, "workspace/.sandboxer": 0o777,
		"workspace/.sandboxer/instructions.md": 0o666, "bundle": 0o755, "bundle/compose.yaml": 0o644, "bundle/made": 0o755,
		"bundle/made/here": 0o755} {
		info, err := os.Stat(filepath.Join(s.root, string(two.ID), at))
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s is %s, not %s", at, info.Mode(), want)
		}
	}
}
