package engine

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
)

func TestALocalLedgerIsWarnedOfWhereRunnersForget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ci, ledger string
		want       int
	}{
		"a runner with the default ledger": {"true", "", 1},
		"a runner with a chosen one":       {"true", "sqlite:///var/lib/ledger.db", 0},
		"a person's machine":               {"", "", 0},
	} {
		e := &Engine{opts: Options{Ledger: c.ledger}, catalog: &catalog.Catalog{}, getenv: func(string) string { return c.ci }}
		if got := e.Warnings(); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	e := &Engine{catalog: &catalog.Catalog{Notices: []string{"one replaces another"}}, getenv: func(string) string { return "" }}
	if got := e.Warnings(); len(got) != 1 || got[0].Detail != "one replaces another" {
		t.Errorf("catalog: %v", got)
	}
}
