package catalog

import (
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestABundleOfTheProgramIsCopiedAndRemoved(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	files := fstest.MapFS{"builtin/profiles/stack/web/compose.yaml": {Data: []byte("services: {}\n")}}
	at := home{dir: builtinName, builtin: true}
	b, err := builtinBundle(files, at, "stack", temp)
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
	if _, err := builtinBundle(files, at, "other", temp); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(temp, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
