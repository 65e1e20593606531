package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What another machine runs is no other's to sweep while it lives. Once its
// deadline is well over, it is settled and its name is free, also if that
// machine never comes back.
func TestASandboxOfAMachineThatIsGoneFreesItsName(t *testing.T) {
	t.Parallel()
	takesLong(t)
	onBoth(t, atHome(), func(t *testing.T, b *bench) {
		req := engine.Request{Profile: "profile.own", Name: "e2e", TTL: "15s"}
		s := b.create(req)
		first := b.Engine
		onMachine(t.TempDir())(b)
		swept := func(e *engine.Engine, settled int) {
			t.Helper()
			if r, err := e.Sweep(t.Context(), false, nil); err != nil || len(r.Failures) > 0 || len(r.Settled) != settled || len(r.Ended) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
		}
		swept(b.reopen(), 0)
		e := b.later(s.ExpiresAt.Sub(s.CreatedAt) + time.Minute)
		swept(e, 0)
		_, err := e.Create(t.Context(), req, nil, nil)
		if want := s.ExpiresAt.Add(5 * time.Minute).UTC().Format(time.RFC3339); !extensions.IsKind(err, extensions.KindConflict) ||
			!strings.Contains(told(err), want) {
			t.Errorf("told %q, want %q", told(err), want)
		}
		e = b.later(5 * time.Minute)
		swept(e, 1)
		cs, err := b.book().Charges(t.Context(), s.ID)
		if err != nil || len(cs) != 1 || cs[0].Amount <= 0 || cs[0].Amount > 15*2*dollar/3600 {
			t.Errorf("charged %+v, %v", cs, err)
		}
		again := b.make(e, req)
		if _, err := e.Destroy(t.Context(), again.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(told(err))
		}
		for gone := false; !gone; time.Sleep(100 * time.Millisecond) { // the machine has done so by itself
			r, err := first.Sweep(t.Context(), true, nil)
			gone = err == nil && len(r.Orphans) == 0
		}
	})
}
