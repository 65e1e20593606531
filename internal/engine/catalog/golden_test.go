package catalog_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
)

var update = flag.Bool("update", false, "write what is found into testdata")

// TestProblems validates the folder that each archive holds and compares every
// problem with the last section, place by place. What Load says must agree.
func TestProblems(t *testing.T) {
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
			want := &sections[len(sections)-1]
			in := map[string]string{}
			for _, s := range sections[:len(sections)-1] {
				in[s.Name] = string(s.Data)
			}
			dir := folder(t, in)
			got, mistakes := told(t, dir)
			if *update {
				want.Data = []byte(got)
				write(t, name, a)
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if _, err := catalog.Load([]string{dir}, handlers(), today); (err != nil) != mistakes {
				t.Errorf("mistakes: %v, but Load says %v", mistakes, err)
			}
		})
	}
}

func told(t *testing.T, dir string) (text string, mistakes bool) {
	t.Helper()
	problems, err := catalog.ValidatePath(dir, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range problems {
		file, err := filepath.Rel(dir, p.File)
		if err != nil {
			t.Fatal(err)
		}
		kind := "error"
		if p.Notice {
			kind = "notice"
		}
		mistakes = mistakes || !p.Notice
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s\n", filepath.ToSlash(file), p.Line, p.Column, kind, strings.ReplaceAll(p.Msg, dir, "DIR"))
	}
	return b.String(), mistakes
}

func write(t *testing.T, name string, a *txtar.Archive) {
	t.Helper()
	if err := os.WriteFile(name, txtar.Format(a), 0o600); err != nil {
		t.Fatal(err)
	}
}
