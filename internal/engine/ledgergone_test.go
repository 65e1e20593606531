package engine_test

import (
	"slices"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A ledger that answers no more is told of, and is not an empty one.
func TestAPlanTellsOfALedgerThatIsGone(t *testing.T) {
	t.Parallel()
	m := newOffline(t)
	e := m.reopen()
	unread := func(n engine.Notice) bool { return n.Summary == "The ledger cannot be read" }
	if p, err := e.Plan(t.Context(), own); err != nil || slices.ContainsFunc(p.Notices, unread) {
		t.Fatalf("%+v, %v", p.Notices, err)
	}
	m.cut.Off()
	for _, e := range []*engine.Engine{e, m.reopen()} { // that read it before, and that did not
		p, err := e.Plan(t.Context(), own)
		if err != nil || !slices.ContainsFunc(p.Notices, unread) {
			t.Errorf("%+v, %v", p.Notices, err)
		}
		if v, err := e.AccountView(t.Context()); !extensions.IsKind(err, extensions.KindUnavailable) {
			t.Errorf("an account as if it had nothing: %+v, %v", v, err)
		}
	}
}
