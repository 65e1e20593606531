package docfacts

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
)

// TestTheProfileReferenceNamesWhereInputsGo holds the list of the page against
// the one that decides. What containers, services and stages share is told once.
func TestTheProfileReferenceNamesWhereInputsGo(t *testing.T) {
	t.Parallel()
	_, list, found := strings.Cut(pages(t)[profilePage], "- **Where.**")
	list, _, ended := strings.Cut(list, "Everywhere else")
	if !found || !ended {
		t.Fatal("the page has no list of the fields that can hold an input")
	}
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_]+\\.[a-z_.]+)`").FindAllStringSubmatch(list, -1) {
		told[m[1]] = true
	}
	alike := strings.NewReplacer("containers.services.*.", "containers.agent.", "stages.*", "build", ".*", "")
	for _, f := range profile.InputFields {
		short := strings.TrimPrefix(alike.Replace(f), "containers.agent.image.")
		if !strings.Contains(short, ".") || strings.HasPrefix(short, "build.") {
			short = "image." + short
		}
		if !told[short] {
			t.Errorf("the page does not say that %s can hold an input (%s)", f, short)
		}
	}
	for f := range told {
		if f != "image.stages" && !slices.Contains(profile.InputFields, f) && !slices.Contains(profile.InputFields, f+".*") {
			t.Errorf("the page says that %s can hold an input", f)
		}
	}
}
