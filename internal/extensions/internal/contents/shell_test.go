//go:build unix

package contents_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire/execwiretest"
)

// All files of a sandbox come by one call of a program, each with its own bytes, and nothing else stays.
func TestFilesOfASandboxComeTogether(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := contents.Shell{Where: "the sandbox", Run: execwiretest.Place{Shell: []string{"/bin/sh"}, Dir: "/",
		Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}}.Transport}
	want := map[string]string{"a/one": "1\n\x00\xff", filepath.Join(home, "b/two"): "", contents.File: "three"}
	var files []contents.Written
	for _, at := range []string{"a/one", filepath.Join(home, "b/two"), contents.File} {
		files = append(files, contents.Written{Path: at, Text: []byte(want[at])})
	}
	for range 2 { // over those of before, too
		if err := s.PutAll(t.Context(), files); err != nil {
			t.Fatal(err)
		}
	}
	for at, text := range want {
		if got, err := s.Get(t.Context(), at); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", at, got, err)
		}
	}
	if left, err := os.ReadDir(home); err != nil || len(left) != 3 {
		t.Errorf("the home has %v, %v", left, err)
	}
	if err := s.Put(t.Context(), "/proc/no/file", nil); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("where nothing can be: %v", err)
	}
}
