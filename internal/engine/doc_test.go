package engine_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
)

// The page's table of what a crash leads to names every point, and no other.
func TestTheDesignPageKnowsEveryFailpoint(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/design/engine.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, point := range failpointtest.Names("engine.") {
		if n := strings.Count(string(text), "| `"+point+"` |"); n != 1 {
			t.Errorf("%s has %d rows", point, n)
		}
	}
	if got, want := strings.Count(string(text), "\n| `engine."), len(failpointtest.Names("engine.")); got != want {
		t.Errorf("%d rows for %d points", got, want)
	}
	for _, file := range []string{"plan/decide.go", "life/decide.go", "life/sources.go", "life/create.go", "life/claim.go", "life/attempt.go",
		"book/turns.go"} {
		if _, err := os.Stat(file); err != nil || !strings.Contains(string(text), "`"+file+"`") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
