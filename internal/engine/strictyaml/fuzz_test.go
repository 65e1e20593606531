package strictyaml_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// FuzzDecode: whatever the bytes, decoding ends, every mistake lies inside the
// file, and what is accepted holds no control characters.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, s := range a.Files {
			f.Add(s.Data)
		}
	}
	f.Add([]byte("a: &a [*a, *a]\n# x\n  # y\n"))
	f.Add([]byte("? - #\n  - b\n: #\n - x\n#tail\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got thing
		pos, err := strictyaml.DecodePositions("f.yaml", data, &got)
		pos.At("options", "a", "0")
		if err == nil {
			checkClean(t, got.Name)
			checkClean(t, got.Free)
			checkClean(t, got.Options)
			return
		}
		if !extensions.IsKind(err, extensions.KindInvalid) {
			t.Fatalf("kind %s", extensions.KindOf(err))
		}
		var list strictyaml.Errors
		if !errors.As(err, &list) || len(list) == 0 {
			t.Fatalf("no mistakes in %v", err)
		}
		lines := 2 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r"))
		for _, e := range list {
			if len(data) <= strictyaml.MaxBytes && (e.Line < 0 || e.Line > lines || e.Column < 0) || e.Msg == "" {
				t.Fatalf("%v is outside %q", e, data)
			}
		}
	})
}

func checkClean(t *testing.T, v any) {
	switch x := v.(type) {
	case string:
		for _, r := range x {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("control character %U in %q", r, x)
			}
		}
	case []any:
		for _, e := range x {
			checkClean(t, e)
		}
	case map[string]any:
		for k, e := range x {
			checkClean(t, k)
			checkClean(t, e)
		}
	}
}
