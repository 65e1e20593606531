package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// A machine whose clock is wrong takes nothing of the others for overdue.
func TestAClientWithAWrongClockEndsNothingOfOthers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	o := newOffice(t, f.catalog)
	ctx := context.Background()
	token := o.token("acme/web")
	a := o.client(t.TempDir(), "acme/web", token)
	s, err := a.Create(ctx, mine, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	late, err := engine.New(engine.Options{Extensions: all(), StateDir: t.TempDir(), Account: "acme/web", Ledger: o.at, LedgerToken: token, Catalog: []string{f.catalog},
		Lease: fleetLease, Now: func() time.Time { return time.Now().Add(30 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = late.Close() })
	if r, err := late.Sweep(ctx, false, nil); err != nil || len(r.Ended)+len(r.Settled)+len(r.Failures) != 0 {
		t.Errorf("swept: %+v, %v", r, err)
	}
	// Neither does it take its name, or begin anything.
	if made, err := late.Create(ctx, mine, nil, nil); err == nil || made.ID != "" || !strings.Contains(err.Error(), string(s.ID)) && !strings.Contains(err.Error(), "clock") {
		t.Errorf("created: %v, %s", made.ID, told(err))
	}
	if got, err := late.List(ctx, false); err != nil || !slices.ContainsFunc(got, func(x engine.Sandbox) bool { return x.ID == s.ID && x.State == "ready" }) {
		t.Errorf("listed: %+v, %v", got, err)
	}
	if left := f.alive(); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
	if r, err := late.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || r.AlreadyGone || time.Since(r.EndedAt).Abs() > time.Minute {
		t.Errorf("destroyed: %+v, %v", r, err)
	}
	o.sound()
}
