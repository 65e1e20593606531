package life

import (
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A stream may lack what nobody can name: then no path tells it.
func TestWhatATransferLacksIsTold(t *testing.T) {
	t.Parallel()
	s := synced{lacks: &extensions.Incomplete{More: true, Why: "tar: x: Permission denied"},
		report: workspace.Report{Refused: []workspace.Conflict{{Path: "a", Reason: "by rule"}}}}
	told := s.told()
	if len(told) != 2 || told[0] != "a: by rule" || !strings.Contains(told[1], "Permission denied") {
		t.Errorf("told %q", told)
	}
	if slices.Contains(s.left(), told[1]) {
		t.Error("what was not had counts as a file that was left alone here")
	}
	if n := leftNotice(s, nil, "sb-1", "/w", "/kept"); strings.Count(n.Detail, "Permission denied") != 1 {
		t.Errorf("the notice says %q", n.Detail)
	}
}
