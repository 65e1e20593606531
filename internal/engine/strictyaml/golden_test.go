package strictyaml_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var update = flag.Bool("update", false, "write what is found into testdata")

// thing has a field of every form that Decode knows.
type thing struct {
	Name    string             `yaml:"name"`
	Note    *string            `yaml:"note"`
	On      *bool              `yaml:"on"`
	Count   int64              `yaml:"count"`
	Small   int8               `yaml:"small"`
	Ratio   float64            `yaml:"ratio"`
	List    []string           `yaml:"list"`
	Env     map[string]string  `yaml:"env"`
	Inner   *inner             `yaml:"inner"`
	Inners  []inner            `yaml:"inners"`
	ByName  map[string]inner   `yaml:"by_name"`
	Free    any                `yaml:"free"`
	Forms   forms              `yaml:"forms"`
	When    stamp              `yaml:"when"`
	Hidden  string             `yaml:"-"`
	Options map[string]any     `yaml:"options"`
	Levels  map[string][]int64 `yaml:"levels"`
}

type inner struct {
	Level  string `yaml:"level"`
	Access string `yaml:"access"`
}

// TestMistakes compares the text of every error, place by place.
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
			for i := 0; i < len(sections); i += 2 {
				in, want := sections[i], &sections[i+1]
				var got string
				if err := decode(in.Name, in.Data, &thing{}); err != nil {
					got = err.Error() + "\n"
					if !extensions.IsKind(err, extensions.KindInvalid) {
						t.Errorf("%s: kind %s", in.Name, extensions.KindOf(err))
					}
				}
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

func write(t *testing.T, name string, a *txtar.Archive) {
	t.Helper()
	if err := os.WriteFile(name, txtar.Format(a), 0o600); err != nil {
		t.Fatal(err)
	}
}
