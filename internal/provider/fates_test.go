package provider

import (
	"slices"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// A name is told as taken where its holder stays, in whichever order Terraform
// plans, and not where it goes.
func TestANameIsTakenOnlyByWhatStays(t *testing.T) {
	t.Parallel()
	const x engine.ID = "sbx-aaaaaaaaaaaaaaaaaaaa"
	warning := engine.Notice{Summary: "taken"}
	for name, c := range map[string]struct {
		steps []string
		run   run
		want  int
	}{
		"of another state":                 {[]string{"want"}, run{}, 1},
		"stays, planned first":             {[]string{"read", "stay", "want"}, run{}, 1},
		"stays, planned last":              {[]string{"read", "want", "stay"}, run{}, 1},
		"stays, wanted twice":              {[]string{"read", "want", "stay", "want"}, run{}, 2},
		"tainted":                          {[]string{"read", "want"}, run{}, 0},
		"gone when it was read":            {[]string{"gone", "want"}, run{}, 0},
		"replaced":                         {[]string{"read", "leave", "want"}, run{}, 0},
		"renamed after it was wanted":      {[]string{"read", "want", "leave"}, run{}, 0},
		"replaced by address":              {[]string{"read", "stay", "want"}, run{replaces: true}, 0},
		"another state's, while replacing": {[]string{"want"}, run{replaces: true}, 1},
		"of another state, in an apply":    {[]string{"want"}, run{applies: true}, 0},
		"tainted, not read":                {[]string{"want"}, run{unread: true}, 0},
		"stays, not read":                  {[]string{"want", "stay"}, run{unread: true}, 1},
		"replaced, not read":               {[]string{"want", "leave"}, run{unread: true}, 0},
		"stays, before an apply":           {[]string{"read", "stay", "want"}, run{applies: true}, 1},
	} {
		var f fates
		var due []engine.Notice
		for _, step := range c.steps {
			switch step {
			case "read":
				f.ours(x)
			case "stay":
				due = append(due, f.stays(x)...)
			case "gone":
				f.gone(x)
			case "leave":
				f.leaves(x)
			case "want":
				due = append(due, f.wants(x, warning, c.run)...)
			}
		}
		if len(due) != c.want || slices.Contains(f.leaving(), x) != slices.Contains(c.steps, "leave") {
			t.Errorf("%s: %d warnings, leaving %v", name, len(due), f.leaving())
		}
	}
}
