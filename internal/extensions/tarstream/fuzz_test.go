package tarstream

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// FuzzUnpack holds three promises against any bytes: nothing appears outside
// the folder, every failure is classified, and what was accepted packs and
// unpacks again to the same manifest.
func FuzzUnpack(f *testing.F) {
	f.Add(stream(f, dir("a"), file("a/b", "x"), link("l", "/etc/passwd")).Bytes())
	f.Add(stream(f, file("../up", "x")).Bytes())
	f.Add(stream(f, link("a", "."), file("a/b", "x")).Bytes())
	f.Add(stream(f, file("a", "x"), special("h", '1')).Bytes())
	f.Add(stream(f, file("a/b/c", "x"), dir("a"), dir("a/b")).Bytes())
	opts := Options{MaxBytes: 1 << 20, MaxEntries: 100, MaxDepth: 8}
	f.Fuzz(func(t *testing.T, b []byte) {
		base := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(base, "root/in"), 0o755))
		root := openRoot(t, filepath.Join(base, "root"))
		m, err := Unpack(t.Context(), bytes.NewReader(b), root, "in", opts)
		for dir, want := range map[string]string{base: "root", root.Name(): "in"} {
			if got, _ := os.ReadDir(dir); len(got) != 1 || got[0].Name() != want {
				t.Fatalf("%s holds %v", dir, got)
			}
		}
		if err != nil {
			if kind := extensions.KindOf(err); kind == extensions.KindInternal {
				t.Fatalf("unclassified: %v", err)
			}
			return
		}
		if os.Getuid() != 0 { // a mode without r or x cannot be read back
			return
		}
		var again bytes.Buffer
		packed, err := PackPath(t.Context(), &again, root, "in", opts)
		must(t, err)
		for _, e := range m.Entries {
			e.Same = "" // names of one file come back as files
			if i := indexOf(packed, e.Path); i < 0 || packed.Entries[i] != e {
				t.Fatalf("%+v was accepted and came back as %+v", e, packed)
			}
		}
	})
}

func indexOf(m Manifest, path string) int {
	for i, e := range m.Entries {
		if e.Path == path {
			return i
		}
	}
	return -1
}
