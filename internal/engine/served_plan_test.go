package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A ledger that answers no more is told of, and is not an empty one.
func TestAPlanTellsOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	o := newOffice(t, "")
	e := o.client(t.TempDir(), "acme/web", o.token("acme/web"))
	unread := func(n engine.Notice) bool { return n.Summary == "The ledger cannot be read" }
	if p, err := e.Plan(ctx, own); err != nil || slices.ContainsFunc(p.Notices, unread) {
		t.Fatalf("%+v, %v", p.Notices, err)
	}
	o.stop()
	for _, e := range []*engine.Engine{e, o.client(t.TempDir(), "acme/web", o.token("acme/web"))} { // that read it before, and that did not
		p, err := e.Plan(ctx, own)
		if err != nil || !slices.ContainsFunc(p.Notices, unread) {
			t.Errorf("%+v, %v", p.Notices, err)
		}
		if v, err := e.AccountView(ctx); !extensions.IsKind(err, extensions.KindUnavailable) {
			t.Errorf("an account as if it had nothing: %+v, %v", v, err)
		}
	}
}
