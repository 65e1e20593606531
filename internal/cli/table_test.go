package cli

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

var listing = [][]string{
	{"ID", "NAME", "STATE", "PROFILE", "PLACE", "EXPIRES"},
	{"sbx-aaaaaaaaaaaaaaaaaaaa", "end-to-end-of-the-main-branch", "ready, paused", "profile.compose-e2e", "ext.compose-ssh@sandboxer01", "in 1h30m"},
	{"sbx-bbbbbbbbbbbbbbbbbbbb", "测试", "ready", "profile.quickstart", "ext.local", "in 59m"},
}

func printed(t *testing.T, s screen, print func(s screen) error) string {
	t.Helper()
	var out strings.Builder
	s.Writer = &out
	if err := print(s); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Whoever lists copies IDs, so that they are whole at every width.
func TestATableFitsItsTerminal(t *testing.T) {
	t.Parallel()
	for width := 40; width <= 200; width++ {
		got := printed(t, screen{width: width}, func(s screen) error { return grid(s, listing) })
		for line := range strings.Lines(got) {
			if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
				t.Fatalf("%d columns on a terminal of %d:\n%s", n, width, got)
			}
		}
		for _, row := range listing[1:] {
			if !strings.Contains(got, row[0]) {
				t.Fatalf("no %s at %d columns:\n%s", row[0], width, got)
			}
		}
	}
}

func TestANarrowTableIsPrintedRowByRow(t *testing.T) {
	t.Parallel()
	got := printed(t, screen{width: 40}, func(s screen) error { return grid(s, listing[:1+1]) })
	want := `ID       sbx-aaaaaaaaaaaaaaaaaaaa
NAME     end-to-end-of-the-main-branch
STATE    ready, paused
PROFILE  profile.compose-e2e
PLACE    ext.compose-ssh@sandboxer01
EXPIRES  in 1h30m
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A shortened amount would be another amount.
func TestNumbersAreNeverCut(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"WHAT IT WAS FOR", "AMOUNT"}, {"averylongcomponentwithoutanyspace", "1234567890.123456789"}}
	for width := 30; width < 60; width++ {
		got := printed(t, screen{width: width}, func(s screen) error { return columns(s, 1, rows) })
		if !strings.Contains(got, rows[1][1]) {
			t.Fatalf("at %d columns:\n%s", width, got)
		}
	}
}

func TestWideAndPipesHaveEverything(t *testing.T) {
	t.Parallel()
	for _, s := range []screen{{}, {wide: true}} {
		got := printed(t, s, func(s screen) error { return grid(s, listing) })
		if strings.Contains(got, "…") || strings.Count(got, "\n") != len(listing) || strings.Contains(got, " \n") {
			t.Errorf("printed\n%s", got)
		}
	}
}

func TestFactsWrapBesideTheirName(t *testing.T) {
	t.Parallel()
	got := printed(t, screen{width: 40}, func(s screen) error {
		return facts(s, [][2]string{{"note", "Docker cannot limit the size of a disk here"}, {"nothing", ""}, {"name", "one"}})
	})
	if want := "note  Docker cannot limit the size of a\n      disk here\nname  one\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
