package profile_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var update = flag.Bool("update", false, "write what is found into testdata")

// TestMistakes compares the text of every error, place by place. A file whose
// name starts with "+" is added to the set for the next one to extend.
func TestMistakes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sections := a.Files
			s := profile.NewSet()
			for i := 0; i < len(sections); i += 2 {
				in, want := sections[i], &sections[i+1]
				got := found(t, s, in)
				if *update {
					want.Data = []byte(got)
				}
				if diff := cmp.Diff(string(want.Data), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", in.Name, diff)
				}
			}
			if *update {
				write(t, name, a)
			}
		})
	}
}

func found(t *testing.T, s *profile.Set, in txtar.File) string {
	t.Helper()
	name, keep := strings.CutPrefix(in.Name, "+")
	p, err := profile.Parse(name, in.Data)
	if err == nil {
		if keep {
			s.Add(p)
		} else {
			_, _, err = s.Flatten(p)
		}
	}
	if err == nil {
		return ""
	}
	var e *extensions.Error
	if !errors.As(err, &e) || e.Kind != extensions.KindInvalid {
		t.Errorf("%s: not invalid: %v", name, err)
	}
	return err.Error() + "\n"
}

func write(t *testing.T, name string, a *txtar.Archive) {
	t.Helper()
	if err := os.WriteFile(name, txtar.Format(a), 0o600); err != nil {
		t.Fatal(err)
	}
}
