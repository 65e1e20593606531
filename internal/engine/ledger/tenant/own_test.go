package tenant_test

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

func TestAnAccountSeesAllThatIsItsOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	mine := settle(h, "acme/web")
	settle(h, "acme/other")
	h.grant(dollar)
	for _, account := range []string{"acme/web", "acme"} {
		v := h.view(account)
		boxes, err := v.List(ctx, ledger.Filter{})
		if want := map[string]int{"acme/web": 1, "acme": 2}[account]; err != nil || len(boxes) != want {
			t.Errorf("%s lists %d sandboxes, want %d (%v)", account, len(boxes), want, err)
		}
		if s, err := v.ByName(ctx, "acme/web", mine.box.Name); err != nil || s.ID != mine.box.ID {
			t.Errorf("%s: by name %v, %v", account, s.ID, err)
		}
		if b, err := v.Balances(ctx, "acme"); err != nil || len(b) == 0 {
			t.Errorf("%s: the wallet %v, %v", account, b, err)
		}
		es, err := v.Events(ctx, "acme", 1, 0)
		for _, e := range es {
			if e.Type == "funds.granted" {
				es = nil
			}
		}
		if err != nil || es != nil {
			t.Errorf("%s does not see the grant: %v", account, err)
		}
		limited, err := v.Events(ctx, "acme", 2, 2)
		if err != nil || len(limited) != 2 || limited[0].Seq < 2 {
			t.Errorf("%s: %d events, %v", account, len(limited), err)
		}
		head, err := v.Head(ctx, "acme")
		if err != nil || head.Seq == 0 {
			t.Error(head, err)
		}
		if r, err := v.Verify(ctx, head); err != nil || !r.OK() {
			t.Errorf("%s: %+v, %v", account, r, err)
		}
		cut := head
		cut.Seq++
		if r, err := v.Verify(ctx, cut); err != nil || r.OK() {
			t.Errorf("%s: a head that is not there: %+v, %v", account, r, err)
		}
		if alive, err := v.HolderAlive(ctx, holder("acme/web")); err != nil || alive {
			t.Errorf("%s: %t, %v", account, alive, err)
		}
	}
}
