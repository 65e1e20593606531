package mcpserver_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
)

func TestThePersonIsToldWhatTheLedgerCouldNotRecordOfAnEnd(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	ctx := failpointtest.Inject(t.Context(), "ledger.commit", func() error {
		if down.Load() {
			return errors.New("the disk is full")
		}
		return nil
	})
	var mu sync.Mutex
	var told []string
	limits := limitsOf("profile.priced")
	limits.Budget = "1.00 USD"
	a := serveIn(ctx, t, engineOf(t), limits, func(n engine.Notice) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, n.Summary)
	})
	said := func(when string, all ...string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for _, want := range all {
			if !slices.Contains(told, want) {
				t.Errorf("%s, %q is not in %q", when, want, told)
			}
		}
		told = nil
	}
	first, last := a.create("profile.priced"), a.create("profile.priced")
	var ended, kept struct{ ID string }
	a.call("sandbox_snapshot", map[string]any{"id": first.ID}, &ended)
	a.call("sandbox_snapshot", map[string]any{"id": last.ID}, &kept)
	down.Store(true)
	a.call("sandbox_destroy", map[string]any{"id": ended.ID}, nil)
	said("a snapshot deleted", "The deletion of snapshot "+ended.ID+" is not recorded")
	a.call("sandbox_destroy", map[string]any{"id": first.ID}, nil)
	said("a sandbox destroyed", "Ended, but not settled in the ledger")
	if err := a.hangUp(); err != nil {
		t.Errorf("the end: %v", err)
	}
	said("the session over", "The deletion of snapshot "+kept.ID+" is not recorded", "Ended, but not settled in the ledger")
}
