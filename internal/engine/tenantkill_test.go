package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Wherever a run dies, its vendor has at most one sandbox, which the next run finds and makes whole or ends, under the same
// name; nothing is left there, and each life is metered once.
func TestAKillAtAnyStepAtAVendorConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTenant(t, name)
			for _, point := range failpointtest.Names("engine.create.") {
				h.dies(order{Do: "create", Name: "one"}, point)
				h.leaves(point, h.only(point))
			}
			for _, point := range failpointtest.Names("engine.destroy.") {
				rec := h.converge(h.profile, "one")
				h.dies(order{Do: "destroy", Receipt: rec}, point)
				h.leaves(point, rec)
			}
			h.extendKilled()
			h.modeKilled()
			h.snapshotKilled()
			h.billed()
			h.closed()
		})
	}
}

// A kill before a request and one after the request before it leave the vendor alike, so each is tried once, when it is done.
func TestAKillAtAnyRequestToAHostedPlaceConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTenant(t, name)
			creates := h.victim(order{Do: "create", Name: "one"}, 0)
			rec := h.only("whole")
			ends := h.victim(order{Do: "destroy", Receipt: rec}, 0)
			h.leaves("whole", rec)
			for n := int64(1); n < creates; n++ {
				at := fmt.Sprintf("create, request %d of %d", n, creates)
				h.victim(order{Do: "create", Name: "one"}, n)
				h.leaves(at, h.only(at))
			}
			for n := int64(1); n <= ends; n++ {
				at := fmt.Sprintf("destroy, request %d of %d", n, ends)
				rec := h.converge(h.profile, "one")
				h.victim(order{Do: "destroy", Receipt: rec}, n)
				h.leaves(at, rec)
			}
			h.billed()
			h.closed()
		})
	}
}

// extendKilled kills extensions: then the vendor ends the sandbox when the ledger says so.
func (h tenant) extendKilled() {
	h.t.Helper()
	if !h.descriptor.Has(extensions.PowerExtend) {
		return
	}
	rec := h.converge(h.profile, "one")
	for _, point := range failpointtest.Names("engine.extend.") {
		h.dies(order{Do: "extend", Receipt: rec, TTL: "40m"}, point)
		h.recovered(point)
		there, booked := h.observed(rec), h.now(rec).ExpiresAt
		late := there.Deadline.Sub(booked)
		if !there.Deadline.IsZero() && late.Abs() > h.descriptor.Capabilities.DeadlineGrain+soon {
			h.t.Errorf("%s: its place ends it %s later than the ledger", point, late)
		}
	}
	h.leaves("extend", rec)
}

// modeKilled kills pauses and resumes: then the ledger has the mode that the vendor has.
func (h tenant) modeKilled() {
	h.t.Helper()
	if !h.descriptor.Has(extensions.PowerPause) {
		return
	}
	rec := h.converge(h.profile, "one")
	for _, point := range failpointtest.Names("engine.mode.") {
		for _, do := range []string{"pause", "resume"} {
			h.dies(order{Do: do, Receipt: rec}, point)
			h.recovered(point)
			there, booked := h.observed(rec), h.now(rec).Mode
			if (booked == string(engine.Paused)) != (there.Phase == extensions.PhasePaused) {
				h.t.Errorf("%s of %s: it is %s, and the ledger says %s", point, do, there.Phase, booked)
			}
			h.victim(order{Do: do, Receipt: rec}, 0)
		}
	}
	h.leaves("mode", rec)
}

// snapshotKilled kills snapshots and their ends: none is left that the ledger does not have.
func (h tenant) snapshotKilled() {
	h.t.Helper()
	if !h.descriptor.Has(extensions.PowerSnapshot) {
		return
	}
	rec := h.converge(h.profile, "one")
	for _, point := range failpointtest.Names("engine.snapshot.") {
		h.dies(order{Do: "snapshot", Receipt: rec}, point)
		h.recovered(point)
		h.sameKept(point)
		if o := h.observed(rec); o.Phase != extensions.PhaseReady {
			h.t.Errorf("%s: its source is %s", point, o.Phase)
		}
	}
	for _, point := range failpointtest.Names("engine.unkeep.") {
		snap := h.keep(h.now(rec), engine.SnapshotRequest{Name: "again", Retention: "30d"})
		h.dies(order{Do: "unkeep", Snapshot: snap.ID}, point)
		h.recovered(point)
		h.sameKept(point)
	}
	all, err := h.reopen().Snapshots(h.t.Context(), false)
	if err != nil {
		h.t.Fatal(told(err))
	}
	for _, snap := range all {
		if _, err := h.DeleteSnapshot(h.t.Context(), snap, false); err != nil {
			h.t.Error(told(err))
		}
	}
	h.sameKept("all deleted")
	h.leaves("snapshot", rec)
}

// sameKept demands that the vendor keeps as many snapshots as the ledger has, and that each of these is whole.
func (h tenant) sameKept(at string) {
	h.t.Helper()
	all, err := h.reopen().Snapshots(h.t.Context(), false)
	if err != nil {
		h.t.Fatal(told(err))
	}
	for _, snap := range all {
		if snap.State != "ready" {
			h.t.Errorf("%s: the snapshot %s is %s: %s", at, snap.ID, snap.State, snap.Reason)
		}
	}
	if there := h.images(); there != len(all) {
		h.t.Errorf("%s: %d snapshots are there, and the ledger has %d", at, there, len(all))
	}
}
