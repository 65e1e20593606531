package all_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestUnknownIsNotUnlimited(t *testing.T) {
	t.Parallel()
	page := matrix([]extensions.Descriptor{{Handler: "x"}})
	for _, want := range []string{"| maxConcurrent | unknown |", "| maxSessionDurationSeconds | no limit of the place |", "| exec | – |"} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("the page has no row %q", want)
		}
	}
}

func TestEveryDeclaredFactHasARow(t *testing.T) {
	t.Parallel()
	const published = 17
	facts := reflect.TypeFor[extensions.Capabilities]().NumField()
	kept := reflect.TypeFor[extensions.Snapshots]().NumField() + reflect.TypeFor[extensions.Forks]().NumField() +
		reflect.TypeFor[extensions.Pauses]().NumField()
	// Provides has two rows; place, recoverable, find and list are of the descriptor.
	if want := facts + 1 + 4 + kept + len(extensions.Powers); rows() != want {
		t.Errorf("%d rows, want %d: a capability was added without a row", rows(), want)
	}
	page := matrix(nil)
	_, after, _ := strings.Cut(page, "## The published matrix")
	table, _, _ := strings.Cut(after, "## ")
	if got := strings.Count(table, "\n| ") - 1; got != published {
		t.Errorf("the published matrix has %d rows, want %d", got, published)
	}
}

func TestCellsCannotBreakTheTable(t *testing.T) {
	t.Parallel()
	d := extensions.Descriptor{Handler: "x", Find: extensions.Find{Strength: extensions.FindEventual, Settle: 2 * time.Second}}
	d.Capabilities.Regions = []string{"*", "a|b\nc"}
	page := matrix([]extensions.Descriptor{d})
	if !strings.Contains(page, `| regions | \*, a\|b c |`) || !strings.Contains(page, "| find | eventual, within 2s |") {
		t.Error(page)
	}
}
