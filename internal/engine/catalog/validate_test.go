package catalog_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestValidateTakesFilesAndFolders(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"profiles/child.yaml":  "id: profile.child\nversion: \"1.0.0\"\nextends: profile.parent\nisolaton: { level: vm }\n",
		"profiles/parent.yaml": "id: profile.parent\nversion: \"1.0.0\"\nextends: profile.base\n",
		"profiles/other.yaml":  "id: profile.other\nversion: 1\n",
		"profiles/grand.yaml":  "id: profile.grand\nversion: \"1.0.0\"\nextends: profile.child\noptions: { ext.broken: {} }\n",
		"profiles/cycle.yaml":  "id: profile.cycle\nversion: \"1.0.0\"\nextends: profile.cycle\n",
		"extensions/bad.yaml":  "id: ext.broken\nhandler: locl\n",
		"lone/good.yaml":       "id: profile.lone\nversion: \"1.0.0\"\nextends: profile.quickstart\n",
		"lone/bad.yaml":        "id: profile.lone\nversion: \"1.0.0\"\nextends: profile.nowhere\n",
		"lone/ext.yaml":        "id: ext.lone\nhandler: locl\n",
		"lone/what.yaml":       "name: x\n",
		"lone/broken.yaml":     "a: b: c\n",
	})
	for _, c := range []struct {
		path string
		want []string // "file:line: part of the message"
	}{
		{"profiles/child.yaml", []string{"profiles/child.yaml:4: unknown key \"isolaton\" (did you mean \"isolation\"?)"}},
		{"profiles/parent.yaml", nil},
		{"profiles/grand.yaml", []string{"profiles/grand.yaml:3: not fully checked: profile.child has mistakes itself"}},
		{"profiles/cycle.yaml", []string{"profiles/cycle.yaml:3: extends forms a cycle"}},
		{"profiles", []string{"extensions/bad.yaml:2: no handler is called", "profiles/child.yaml:4: unknown key",
			"profiles/cycle.yaml:3: extends forms a cycle", "profiles/grand.yaml:3: not fully checked", "profiles/other.yaml:2: want text"}},
		{".", []string{"extensions/bad.yaml:2: no handler is called", "profiles/child.yaml:4: unknown key",
			"profiles/cycle.yaml:3: extends forms a cycle", "profiles/grand.yaml:3: not fully checked", "profiles/other.yaml:2: want text"}},
		{"lone/good.yaml", nil},
		{"lone/bad.yaml", []string{"lone/bad.yaml:3: there is no profile"}},
		{"lone/ext.yaml", []string{"lone/ext.yaml:2: no handler is called"}},
		{"lone/what.yaml", []string{"lone/what.yaml:0: unknown kind of file"}},
		{"lone/broken.yaml", []string{"lone/broken.yaml:1: mapping values"}},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			got, err := catalog.ValidatePath(filepath.Join(dir, filepath.FromSlash(c.path)), handlers(), today)
			if err != nil || len(got) != len(c.want) {
				t.Fatalf("got %+v, %v; want %q", got, err, c.want)
			}
			for i, w := range c.want {
				file, rest, _ := strings.Cut(w, ":")
				line, msg, _ := strings.Cut(rest, ": ")
				if got[i].File != filepath.Join(dir, filepath.FromSlash(file)) || line != string(rune('0'+got[i].Line)) ||
					!strings.Contains(got[i].Msg, msg) {
					t.Errorf("got %+v, want %s", got[i], w)
				}
			}
		})
	}
}

// TestValidateFromInsideTheFolder: "." and a bare file name do not tell the
// folder's name by themselves.
func TestValidateFromInsideTheFolder(t *testing.T) {
	dir := folder(t, map[string]string{
		"profiles/child.yaml":  "id: profile.child\nversion: \"1.0.0\"\nextends: profile.parent\n",
		"profiles/parent.yaml": "id: profile.parent\nversion: \"1.0.0\"\n",
	})
	t.Chdir(filepath.Join(dir, "profiles"))
	for _, path := range []string{"child.yaml", "./child.yaml", ".", "..", "../profiles/child.yaml"} {
		if got, err := catalog.ValidatePath(path, handlers(), today); err != nil || len(got) != 0 {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
}

func TestValidateOfNothing(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"lone/profile.x.yaml": "id: profile.x\n", "some/extensions/ext.yaml": "id: ext.mine\nhandler: local\n",
		"some/profiles/README": "none yet\n"})
	for _, path := range []string{t.TempDir(), filepath.Join(dir, "lone"), filepath.Join(dir, "some/profiles")} {
		_, err := catalog.ValidatePath(path, handlers(), today)
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), path+" has nothing to check") ||
			!strings.Contains(extensions.RemedyOf(err), "profiles/") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if _, err := catalog.ValidatePath(filepath.Join(dir, "some"), handlers(), today); err != nil {
		t.Errorf("a catalog of bindings alone: %v", err)
	}
	_, err := catalog.ValidatePath(filepath.Join(t.TempDir(), "missing.yaml"), handlers(), today)
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "missing.yaml cannot be read: no such file") {
		t.Errorf("got %v", err)
	}
}
