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
			h.restoreKilled()
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
				made, killed := h.cut(order{Do: "create", Name: "one"}, n)
				h.leaves(at, h.only(at))
				if !killed { // it did not have to wait as long as the first
					if made < creates/2 {
						t.Errorf("one create made %d requests, another %d", creates, made)
					}
					break
				}
			}
			for n := int64(1); n <= ends; n++ {
				at := fmt.Sprintf("destroy, request %d of %d", n, ends)
				rec := h.converge(h.profile, "one")
				h.victim(order{Do: "destroy", Receipt: rec}, n)
				h.leaves(at, rec)
			}
			if h.descriptor.Snapshots.EndsSource {
				h.lastSnapshotCut()
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
	if h.descriptor.Snapshots.EndsSource {
		h.lastSnapshotKilled()
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
	h.unkeepAll()
	h.leaves("snapshot", rec)
}

// restoreKilled kills creates from a snapshot: then the vendor has the one sandbox with its files, and the snapshot stays.
func (h tenant) restoreKilled() {
	h.t.Helper()
	if !h.descriptor.Has(extensions.PowerSnapshot) {
		return
	}
	source := h.converge(h.profile, "one")
	h.sh(source, "echo kept >f")
	snap := h.keep(h.now(source), engine.SnapshotRequest{Name: "kept", Retention: "30d", AllowEnd: h.descriptor.Snapshots.EndsSource})
	if !h.descriptor.Snapshots.EndsSource {
		h.leaves("restore", source)
	}
	for _, point := range failpointtest.Names("engine.create.") {
		h.dies(order{Do: "create", Name: "one", Snapshot: snap.ID}, point)
		if there := h.there(); len(there) > 1 {
			h.t.Errorf("restore, %s: the killed run left %v", point, there)
		}
		restored := h.convergeTo(order{Profile: h.profile, Name: "one", Snapshot: snap.ID})
		if got := h.sh(restored, "cat f"); got != "kept\n" {
			h.t.Errorf("restore, %s: it reads %q", point, got)
		}
		h.leaves("restore, "+point, restored)
		h.sameKept("restore, " + point)
	}
	h.unkeepAll()
}

// lastSnapshotKilled kills snapshots that end their sandbox: then either it runs on, or its snapshot is kept and it is settled.
func (h tenant) lastSnapshotKilled() {
	h.t.Helper()
	for _, point := range append(failpointtest.Names("engine.snapshot."), failpointtest.Names("engine.destroy.")...) {
		rec := h.converge(h.profile, "one")
		h.sh(rec, "echo "+point+" >f")
		h.dies(order{Do: "snapshot", Receipt: rec}, point)
		h.recovered(point)
		kept := h.keptOrLives(point, rec)
		if kept == "" && point == "engine.snapshot.begun" {
			continue
		}
		restored := h.convergeTo(order{Profile: h.profile, Name: "one", Snapshot: kept}) // the name is free again
		if got := h.sh(restored, "cat f"); got != point+"\n" {
			h.t.Errorf("%s: restored, it reads %q", point, got)
		}
		h.leaves(point, restored)
		h.unkeepAll()
	}
	for _, point := range failpointtest.Names("engine.unkeep.") {
		snap := h.keep(h.now(h.converge(h.profile, "one")), engine.SnapshotRequest{Name: "again", Retention: "30d", AllowEnd: true})
		h.dies(order{Do: "unkeep", Snapshot: snap.ID}, point)
		h.recovered(point)
		h.sameKept(point)
	}
}

// keptOrLives demands that a sandbox runs, and ends it then, or that it is settled and one snapshot of it is kept.
func (h tenant) keptOrLives(at string, rec engine.Receipt) (kept string) {
	h.t.Helper()
	h.sameKept(at)
	all, err := h.reopen().Snapshots(h.t.Context(), false)
	if err != nil {
		h.t.Fatal(told(err))
	}
	there := h.there()
	if len(there)+len(all) != 1 {
		h.t.Fatalf("%s: there are %v and %d snapshots, want one of either", at, there, len(all))
	}
	if len(all) > 0 {
		h.accounted()
		return all[0].ID
	}
	if o := h.observed(rec); o.Phase != extensions.PhaseReady {
		h.t.Errorf("%s: without a snapshot it is %s", at, o.Phase)
	}
	h.leaves(at, rec)
	return ""
}

// lastSnapshotCut kills snapshots that end their sandbox when the vendor has done one of their requests.
func (h tenant) lastSnapshotCut() {
	h.t.Helper()
	requests := h.victim(order{Do: "snapshot", Receipt: h.converge(h.profile, "one")}, 0)
	h.unkeepAll()
	kept := 0
	for n := int64(1); n <= requests; n++ {
		at := fmt.Sprintf("snapshot, request %d of %d", n, requests)
		rec := h.converge(h.profile, "one")
		h.victim(order{Do: "snapshot", Receipt: rec}, n)
		h.recovered(at)
		if h.keptOrLives(at, rec) != "" {
			kept++
		}
		h.unkeepAll()
	}
	if kept == 0 || kept == int(requests) {
		h.t.Errorf("%d of %d killed snapshots are kept", kept, requests)
	}
}

// unkeepAll deletes every snapshot.
func (h tenant) unkeepAll() {
	h.t.Helper()
	all, err := h.reopen().Snapshots(h.t.Context(), false)
	if err != nil {
		h.t.Fatal(told(err))
	}
	for _, snap := range all {
		if _, err := h.reopen().DeleteSnapshot(h.t.Context(), snap, false); err != nil {
			h.t.Error(told(err))
		}
	}
	h.sameKept("all deleted")
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
