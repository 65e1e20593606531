//go:build unix

package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
)

// TestLinksInsideTheFolderAreFollowed: mounted configuration is often a link
// to a folder of the same volume.
func TestLinksInsideTheFolderAreFollowed(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"..data/mine.yaml": mine})
	if err := os.Mkdir(filepath.Join(dir, "profiles"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../..data/mine.yaml", filepath.Join(dir, "profiles/mine.yaml")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "catalog")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Load([]string{link}, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Profiles.Lookup("profile.mine"); err != nil {
		t.Error(err)
	}
}

func TestLinksOutOfTheFolderAndOddFilesAreRefused(t *testing.T) {
	t.Parallel()
	outside := folder(t, map[string]string{"secret.yaml": "id: hunter2\n"})
	for name, make := range map[string]func(path string) error{
		"absolute link": func(path string) error { return os.Symlink(filepath.Join(outside, "secret.yaml"), path) },
		"relative link": func(path string) error {
			rel, err := filepath.Rel(filepath.Dir(path), filepath.Join(outside, "secret.yaml"))
			if err != nil {
				return err
			}
			return os.Symlink(rel, path)
		},
		"dangling link":  func(path string) error { return os.Symlink("nowhere", path) },
		"link to itself": func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"pipe":           func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link to folder": func(path string) error { return os.Symlink(".", path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{"profiles/mine.yaml": mine})
			path := filepath.Join(dir, "profiles/odd.yaml")
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			_, err := catalog.Load([]string{dir}, handlers(), today)
			if err == nil || !strings.HasPrefix(err.Error(), path+": ") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestUnreadableFilesAreNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := folder(t, map[string]string{"profiles/mine.yaml": mine})
	path := filepath.Join(dir, "profiles/mine.yaml")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := catalog.Load([]string{dir}, handlers(), today)
	if err == nil || err.Error() != path+": cannot be read: permission denied" {
		t.Errorf("got %v", err)
	}
}
