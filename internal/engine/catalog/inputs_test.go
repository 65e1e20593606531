package catalog_test

import (
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
