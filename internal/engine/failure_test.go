package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestAFailedCreateLeavesNothingAndSaysWhy(t *testing.T) {
	t.Parallel()
	takesLong(t)
	for name, rule := range map[string]saasstub.Rule{
		"quota":        {Op: vendor.OpCreate, Do: vendor.DoQuota},
		"invalid":      {Op: vendor.OpCreate, Do: vendor.DoInvalid},
		"unauthorized": {Op: vendor.OpCreate, Do: vendor.DoUnauthorized},
		"unavailable":  {Op: vendor.OpCreate, Do: vendor.DoUnavailable},
		"never ready":  {Op: vendor.OpStart, Do: vendor.DoFailReady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.script(rule)
			s, err := b.Create(context.Background(), engine.Request{Profile: "profile.stub", Name: "one"}, nil, nil)
			if err == nil || s.ID != "" {
				t.Fatalf("created %q, %v", s.ID, err)
			}
			if left := b.left(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			b.script()
			b.create(engine.Request{Profile: "profile.stub", Name: "one"}) // the name is free again
			b.clean()
		})
	}
}

func TestALostAnswerIsSettledByFindNeverByASecondSandbox(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"profile.stub", "profile.eventual"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			rule := saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoLoseAnswer, Times: 1}
			b.script(rule)
			b.does(filepath.Join(b.StateDir, "saas-stub-eventual"), rule)
			s := b.create(engine.Request{Profile: profile, Name: "one"})
			if left := b.left(); len(left) != 1 || left[0] != string(s.ID) {
				t.Errorf("the vendor holds %v, want %s alone", left, s.ID)
			}
			b.clean()
		})
	}
}

func TestAnUnreachableVendorIsNeverReadAsAbsent(t *testing.T) {
	t.Parallel()
	takesLong(t)
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	b.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
	e := b.reopen()
	if _, err := e.Get(ctx, s.Receipt); !extensions.IsKind(err, extensions.KindUnreachable) {
		t.Errorf("get: %v", err)
	}
	if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err == nil || extensions.RemedyOf(err) == "" {
		t.Errorf("destroy: %v, remedy %q", err, extensions.RemedyOf(err))
	}
	report, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{Forget: true})
	if err != nil || !report.Forgotten {
		t.Errorf("forget: %+v, %v", report, err)
	}
	b.script()
	if left := b.left(); len(left) != 1 {
		t.Fatalf("the vendor holds %v, want the forgotten one", left)
	}
	sweep, err := b.reopen().Sweep(ctx, false, nil)
	if err != nil || len(sweep.Ended) != 1 {
		t.Errorf("sweep: %+v, %v", sweep, err)
	}
	if left := b.left(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	b.clean()
}

func TestWithoutTheLedgerAReceiptIsEnough(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	other := b.elsewhere()
	got, err := other.Get(ctx, s.Receipt)
	if err != nil || got.State != "ready" || got.Handle != s.Handle {
		t.Fatalf("get: %+v, %v", got, err)
	}
	if _, err := other.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(err)
	}
	if left := b.left(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := other.Get(ctx, s.Receipt); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("after destroy: %v", err)
	}
}

func TestATakenNameNamesItsHolderAndPrintsAnImport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	req := engine.Request{Profile: "profile.stub", Name: "one", Consumer: engine.Consumer{Actor: "atm", RunID: "run-7"}}
	s := b.create(req)
	_, err := b.Create(ctx, req, nil, nil)
	if !extensions.IsKind(err, extensions.KindConflict) {
		t.Fatalf("second create: %v", err)
	}
	text := err.Error() + extensions.RemedyOf(err)
	for _, want := range []string{string(s.ID), "import {", "run-7", "on_conflict"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in: %s", want, text)
		}
	}
	req.OnConflict = "adopt"
	taken := b.create(req)
	if taken.ID != s.ID || taken.Generation != s.Generation+1 {
		t.Fatalf("adopted %s generation %d", taken.ID, taken.Generation)
	}
	if _, err := b.Get(ctx, s.Receipt); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("the former owner reads: %v", err)
	}
	if r, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || !r.AlreadyGone || len(b.left()) != 1 {
		t.Errorf("the former owner destroys: %+v, %v", r, err)
	}
	req.Env = map[string]string{"OTHER": "spec"}
	if _, err := b.Create(ctx, req, nil, nil); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("adopting another spec: %v", err)
	}
	if _, err := b.Destroy(ctx, taken.Receipt, engine.DestroyOptions{}); err != nil || len(b.left()) != 0 {
		t.Errorf("the owner destroys: %v, left %v", err, b.left())
	}
	b.clean()
}

func TestAVanishedSandboxFreesItsNameAndIsSettledFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	b.script(saasstub.Rule{Op: vendor.OpExec, Do: vendor.DoVanish, Times: 1})
	_, _ = b.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"true"}}) // whatever it answers, it is gone
	e := b.reopen()
	if _, err := e.Get(ctx, s.Receipt); !extensions.IsKind(err, extensions.KindNotFound) || !strings.Contains(err.Error(), "disappeared") {
		t.Fatalf("get of a vanished one: %v", err)
	}
	b.script()
	again, err := e.Create(ctx, engine.Request{Profile: "profile.stub", Name: "one"}, nil, nil)
	if err != nil || again.ID == s.ID {
		t.Fatalf("create over a vanished one: %s, %v", again.ID, err)
	}
	cs, err := e.Charges(ctx, s.ID)
	if err != nil || len(cs) == 0 {
		t.Errorf("the vanished one was not settled: %v, %v", cs, err)
	}
	b.clean()
}

func TestTheEndMovesWithTheTTL(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"}
	s := b.create(req)
	req.TTL = "30m"
	longer, err := b.Update(ctx, s.Receipt, req, nil)
	if err != nil || !longer.ExpiresAt.Equal(s.CreatedAt.Add(30*time.Minute)) {
		t.Fatalf("longer: %s, %v", longer.ExpiresAt, err)
	}
	req.TTL = "20m"
	shorter, err := b.Update(ctx, longer.Receipt, req, nil)
	if err != nil || !shorter.ExpiresAt.Equal(s.CreatedAt.Add(20*time.Minute)) {
		t.Fatalf("shorter: %s, %v", shorter.ExpiresAt, err)
	}
	req.TTL = "25h"
	if _, err := b.Update(ctx, shorter.Receipt, req, nil); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("above the maximum: %v", err)
	}
	b.clean()
}

func TestAnExpiredSandboxIsShownFreesItsNameAndIsSettledAtItsTrueEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"})
	e := b.later(11 * time.Minute)
	got, err := e.Get(ctx, s.Receipt)
	if err != nil || got.State != "expired" {
		t.Fatalf("get: %+v, %v", got, err)
	}
	again := b.make(e, engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"})
	if again.ID == s.ID {
		t.Fatal("the expired one came back")
	}
	old, err := e.Lookup(ctx, s.ID, "", "")
	if err != nil || old.State != "destroyed" || old.EndedAt.Sub(s.ExpiresAt).Abs() > time.Second {
		t.Errorf("settled: %s at %s, due %s, %v", old.State, old.EndedAt, s.ExpiresAt, err)
	}
	if got, err := e.Get(ctx, s.Receipt); err != nil || got.State != "expired" {
		t.Errorf("the expired one still reads as: %+v, %v", got.State, err)
	}
	b.clean()
}

func TestRecreateKeepsTheIDAndRaisesTheGeneration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one", Secrets: map[string]engine.Secret{"KEY": extensions.NewSecret("v")}})
	if _, err := b.Recreate(ctx, s.Receipt, nil, nil); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("without its secrets: %v", err)
	}
	again, err := b.Recreate(ctx, s.Receipt, map[string]engine.Secret{"KEY": extensions.NewSecret("v")}, nil)
	if err != nil || again.ID != s.ID || again.Generation != s.Generation+1 || again.State != "ready" {
		t.Fatalf("recreated: %+v, %v", again, err)
	}
	if left := b.left(); len(left) != 1 {
		t.Errorf("the vendor holds %v", left)
	}
	b.end(again)
	b.clean()
}

func TestASnapshotOutlivesItsSandboxAndRestores(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	if _, err := b.Exec(ctx, s.Receipt, engine.ExecRequest{Shell: "echo kept > note.txt"}); err != nil {
		t.Fatal(err)
	}
	snap, err := b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "seeded"})
	if err != nil {
		t.Fatal(err)
	}
	b.end(s)
	if _, err := b.GetSnapshot(ctx, snap); err != nil {
		t.Fatalf("after its sandbox: %v", err)
	}
	restored := b.create(engine.Request{Profile: "profile.stub", Name: "two", FromSnapshot: snap.ID})
	res, err := b.Exec(ctx, restored.Receipt, engine.ExecRequest{Command: []string{"cat", "note.txt"}})
	if err != nil || string(res.Stdout) != "kept\n" {
		t.Errorf("restored: %+v, %v", res, err)
	}
	if _, err := b.DeleteSnapshot(ctx, snap, false); err != nil {
		t.Fatal(err)
	}
	if _, err := b.GetSnapshot(ctx, snap); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("deleted: %v", err)
	}
	if _, err := b.DeleteSnapshot(ctx, snap, false); err != nil {
		t.Errorf("deleted twice: %v", err)
	}
	b.clean()
}

// What is gone is told as gone, also where another is to take its place and the
// ledger cannot be written any more: the next run records it. Before, nothing is
// touched.
func TestASnapshotIsToldAsGoneWhereTheLedgerIsLostMeanwhile(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]bool{"deleted": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
			snap, err := b.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{Name: "kept"})
			if err != nil {
				t.Fatal(err)
			}
			lost := func(when func() bool) context.Context {
				return failpointtest.Inject(t.Context(), "ledger.begin", func() error {
					if when() {
						return failpointtest.ErrInjected
					}
					return nil
				})
			}
			if replaced {
				_, err := b.DeleteSnapshot(lost(func() bool { return true }), snap, true)
				if !errors.Is(err, engine.ErrLedgerUnusable) || b.snapshots() != 1 {
					t.Errorf("before: %v, %d there", err, b.snapshots())
				}
			}
			told, err := b.DeleteSnapshot(lost(func() bool { return b.snapshots() == 0 }), snap, replaced)
			if err != nil || !strings.Contains(notices(told), "not recorded yet") || b.snapshots() != 0 {
				t.Errorf("meanwhile: %v, %s", err, notices(told))
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			next := b.reopen()
			if err := next.Recover(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if v, err := next.LookupSnapshot(t.Context(), snap.ID); !extensions.IsKind(err, extensions.KindNotFound) {
				t.Errorf("after the next run: %+v, %v", v, err)
			}
			if _, err := next.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
				t.Error(err)
			}
			b.clean()
		})
	}
}
