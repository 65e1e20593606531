package catalog_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
)

// An input that reaches nothing is a mistake of whoever declares it, and none
// of a catalog that is used.
func TestAnInputThatNothingUsesIsNamed(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"profiles/parent.yaml": "id: profile.parent\nversion: \"1.0.0\"\ninputs:\n  idle: { type: string }\n  handed: { type: string }\n  " +
			"image: { type: string, default: x }\nimage: { pull: \"{{input.image}}\" }\n",
		"profiles/child.yaml": "id: profile.child\nversion: \"1.0.0\"\nextends: profile.parent\nimage: { pull: \"python:3\" }\nsetup: { " +
			"instructions: \"{{input.handed}}\" }\n",
		"profiles/source.yaml": "id: profile.source\nversion: \"1.0.0\"\ninputs: { repo: { type: string }, ref: { type: string } }\n",
		"profiles/ref.yaml":    "id: profile.ref\nversion: \"1.0.0\"\ninputs:\n  ref: { type: string }\n",
		"profiles/list.yaml":   "id: profile.list\nversion: \"1.0.0\"\ninputs:\n  repo: { type: list }\n",
		"profiles/none.yaml":   "id: profile.none\nversion: \"1.0.0\"\nworkspace: { access: none }\ninputs:\n  repo: { type: string }\n",
	}
	dir := folder(t, files)
	got, err := catalog.ValidatePath(dir, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, p := range got {
		told = append(told, strings.TrimPrefix(p.File, dir+"/profiles/")+": "+p.Msg)
		if p.Notice || p.Line == 0 {
			t.Errorf("%+v", p)
		}
	}
	const nothing = "nothing uses the input "
	want := []string{"list.yaml: " + nothing + "repo", "none.yaml: " + nothing + "repo", "parent.yaml: " + nothing + "idle", "ref.yaml: " +
		nothing + "ref"}
	if len(told) != len(want) {
		t.Fatalf("told %q, want %q", told, want)
	}
	for i := range want {
		if !strings.HasPrefix(told[i], want[i]+":") {
			t.Errorf("told %q, want %q", told[i], want[i])
		}
	}
	if _, err := catalog.Load([]string{dir}, handlers(), today); err != nil {
		t.Errorf("the catalog cannot be used: %v", err)
	}
}

// It is named beside the file's other mistakes, unless a field with a mistake may use it, in that file or in one that
// extends it.
func TestAnInputThatNothingUsesIsNamedBesideOtherMistakes(t *testing.T) {
	t.Parallel()
	const head = "version: \"1.0.0\"\ninputs:\n  idle: { type: string }\n  near: { type: string }\n"
	dir := folder(t, map[string]string{
		"profiles/typo.yaml": "id: profile.typo\n" + head + "isolaton: vm\nsetup: { instruction: \"{{input.near}}\" }\n",
		"profiles/ttl.yaml":  "id: profile.ttl\n" + head + "ttl: { default: 2h, max: 1h }\nsetup: { instructions: \"{{inputs.near}}\" }\n",
		"profiles/name.yaml": "id: profile.name\nversion: \"1.0.0\"\ninputs:\n  no name: { type: string }\n  other: { type: strin }\n",
		"profiles/up.yaml":   "id: profile.up\n" + head + "image: { pull: x, tag: y }\n",
		"profiles/over.yaml": "id: profile.over\nversion: \"1.0.0\"\nextends: profile.up\nsetup: { instructions: \"{{input.near}}\" }\n",
		"profiles/good.yaml": "id: profile.good\n" + head,
		"profiles/user.yaml": "id: profile.user\nversion: \"1.0.0\"\nextends: profile.good\nsetup: { instruction: \"{{input.near}}\" }\n",
	})
	got, err := catalog.ValidatePath(dir, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	idle, at := map[string]string{}, map[string]bool{}
	for _, p := range got {
		file := strings.TrimSuffix(strings.TrimPrefix(p.File, dir+"/profiles/"), ".yaml")
		if input, is := strings.CutPrefix(p.Msg, "nothing uses the input "); is {
			input, _, _ = strings.Cut(input, ":")
			idle[file] += input
		}
		if place := fmt.Sprintf("%s:%d:%d", file, p.Line, p.Column); at[place] {
			t.Errorf("%s is told twice", place)
		} else {
			at[place] = true
		}
	}
	if want := map[string]string{"typo": "idle", "ttl": "idle", "name": "other", "up": "idle", "good": "idle"}; !maps.Equal(idle, want) {
		t.Errorf("nothing uses %v, want %v; told %+v", idle, want, got)
	}
}
