package catalog

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestABundleOfTheProgramIsCopiedAndRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	files := fstest.MapFS{"builtin/profiles/stack/web/compose.yaml": {Data: []byte("services: {}\n")}}
	at := home{dir: builtinName, builtin: true}
	b, err := builtinBundle(files, at, "stack")
	if err != nil {
		t.Fatal(err)
	}
	data, err := b.Root.ReadFile("web/compose.yaml")
	if err != nil || string(data) != "services: {}\n" || b.Origin != "built-in/profiles/stack" {
		t.Errorf("%q from %s: %v", data, b.Origin, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := builtinBundle(files, at, "other"); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
