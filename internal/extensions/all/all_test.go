package all_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/all"
)

const page = "../../../docs/design/capabilities.md"

var update = flag.Bool("update", false, "write the capability page instead of comparing it")

func TestHandlersAreDistinctAndDescriptorsValid(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range all.Extensions() {
		d := e.Describe()
		if seen[d.Handler] {
			t.Errorf("two extensions have the handler %q", d.Handler)
		}
		seen[d.Handler] = true
		if err := d.Validate(); err != nil {
			t.Error(err)
		}
		if d.Handler != strings.ToLower(d.Handler) || strings.ContainsAny(d.Handler, "_ .") {
			t.Errorf("the handler %q is not lower case and hyphenated", d.Handler)
		}
	}
}

// TestMatrixPageIsCurrent compares the capability page with the descriptors.
func TestMatrixPageIsCurrent(t *testing.T) {
	t.Parallel()
	var ds []extensions.Descriptor
	for _, e := range all.Extensions() {
		if d := e.Describe(); !d.NamedOnly { // test doubles are out of a newcomer's sight
			ds = append(ds, d)
		}
	}
	want := matrix(ds)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("%s differs from the descriptors; write it anew: go test ./internal/extensions/all -run TestMatrix -update", page)
	}
}
