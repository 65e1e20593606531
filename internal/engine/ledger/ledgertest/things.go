package ledgertest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func hosts(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	one := ledger.Host{Account: Account, Name: "one", Ref: `{"name":"one","local":true}`,
		Facts: extensions.HostFacts{OS: "linux", CPUs: 2, Notes: []string{"no kvm"}}}
	put := must(l.PutHost(ctx, one))(t)
	head := must(l.Head(ctx, "acme"))(t)
	again := must(l.PutHost(ctx, one))(t)
	if put.Existed || !again.Existed {
		t.Fatalf("the first put: existed %t; the second: %t", put.Existed, again.Existed)
	}
	if again.Existed = false; !cmp.Equal(again, put) || must(l.Head(ctx, "acme"))(t) != head {
		t.Fatalf("putting the same again changed something: %+v", again)
	}
	one.Facts.CPUs = 4
	changed := must(l.PutHost(ctx, one))(t)
	existed := changed.Existed
	changed.Existed = false
	if changed.Facts.CPUs != 4 || !existed || !changed.CreatedAt.Equal(put.CreatedAt) || must(l.Head(ctx, "acme"))(t).Seq != head.Seq+1 {
		t.Fatalf("%+v", changed)
	}
	other := must(l.PutHost(ctx, ledger.Host{Account: "umbrella/x", Name: "one"}))(t)
	if d := cmp.Diff([]ledger.Host{changed, other}, must(l.Hosts(ctx, ""))(t)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]ledger.Host{changed}, must(l.Hosts(ctx, Account))(t)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(changed, must(l.Host(ctx, Account, "one"))(t)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	verified(t, l)
	for range 2 {
		if err := l.DeleteHost(ctx, Account, "one"); err != nil {
			t.Fatal(err)
		}
	}
	if left := must(l.Hosts(ctx, ""))(t); len(left) != 1 {
		t.Fatalf("%+v", left)
	}
	if anew := must(l.PutHost(ctx, one))(t); anew.Existed { // the fold begins again
		t.Fatalf("%+v", anew)
	}
	verified(t, l)
	if _, err := l.PutHost(ctx, ledger.Host{Account: Account, Name: "a\nb"}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Fatalf("want invalid, got %v", err)
	}
}

func snapshots(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	s := made(t, l, "n")
	b := ledger.BeginSnapshot{Key: "snap", Holder: holderOf(t, l), ID: newSnapshotID(t), Account: Account, Name: "seeded", SandboxID: s.ID,
		Extension: "ext.local", Host: "one", HostRef: "ref", Request: json.RawMessage(`{"name":"seeded"}`), CreatedAt: Start}
	snap := must(l.BeginSnapshot(ctx, b))(t)
	if again := must(l.BeginSnapshot(ctx, b))(t); !cmp.Equal(again, snap) || snap.State != ledger.SnapshotCreating {
		t.Fatalf("%+v", again)
	}
	early := ledger.SnapshotChange{ID: snap.ID, Key: "snap/early", To: ledger.SnapshotDeleted}
	if _, err := l.ApplySnapshot(ctx, early); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Fatalf("deleted with its intent open: %v", err)
	}
	h := extensions.SnapshotHandle{Extension: "local", Version: 1, ID: snap.ID, Ref: "f"}
	done := ledger.SnapshotChange{ID: snap.ID, Key: "snap/ready", Expect: ledger.SnapshotExpect{Fence: 1, Holder: b.Holder},
		To:     ledger.SnapshotReady,
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Meter: ledger.MeterOps{Open: meterOpen(Start)},
		Patch: ledger.SnapshotPatch{Handle: &h, Kind: ptr("workspace"), SizeBytes: ptr(int64(9)), Digest: ptr("sha256:aa")}}
	snap = must(l.ApplySnapshot(ctx, done))(t)
	if again := must(l.ApplySnapshot(ctx, done))(t); !cmp.Equal(again, snap) || snap.Handle.Ref != "f" || snap.SizeBytes != 9 ||
		snap.Digest != "sha256:aa" {
		t.Fatalf("%+v", again)
	}
	gone(t, l, s) // it outlives its sandbox
	if d := cmp.Diff(snap, must(l.GetSnapshot(ctx, snap.ID))(t)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	for name, c := range map[string]ledger.SnapshotChange{
		"state": {Expect: ledger.SnapshotExpect{States: []ledger.SnapshotState{ledger.SnapshotFailed}}},
		"fence": {Expect: ledger.SnapshotExpect{Fence: 9}},
		"edge":  {To: ledger.SnapshotCreating},
	} {
		c.ID, c.Key = snap.ID, "stale/"+name
		if _, err := l.ApplySnapshot(ctx, c); !extensions.IsKind(err, extensions.KindConflict) {
			t.Errorf("%s: want conflict, got %v", name, err)
		}
	}
	snap = must(l.ApplySnapshot(ctx, ledger.SnapshotChange{ID: snap.ID, Key: "del", To: ledger.SnapshotDeleting,
		Intent: &ledger.OpenIntent{Kind: ledger.IntentDeleteSnapshot, Holder: b.Holder}}))(t)
	snap = must(l.ApplySnapshot(ctx, ledger.SnapshotChange{ID: snap.ID, Key: "del/done", Expect: ledger.SnapshotExpect{Fence: 2},
		To: ledger.SnapshotDeleted, Meter: ledger.MeterOps{Close: meterClose(Start.Add(time.Hour))},
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Patch: ledger.SnapshotPatch{EndedAt: ptr(Start.Add(time.Hour))}}))(t)
	if kept := must(l.GetSnapshot(ctx, snap.ID))(t); !cmp.Equal(kept, snap) || snap.State != ledger.SnapshotDeleted {
		t.Fatalf("%+v", kept)
	}
	b.ID, b.Key, b.SandboxID = newSnapshotID(t), "of nothing", newID(t)
	if _, err := l.BeginSnapshot(ctx, b); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Fatalf("a snapshot of nothing: %v", err)
	}
	verified(t, l)
}

func events(t *testing.T, address NewAddress) {
	ctx := context.Background()
	t.Run("are CloudEvents in a chain", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		s := made(t, l, "n")
		b := want(newID(t), holderOf(t, l), "n")
		b.Account = "umbrella/x"
		b.Event = ledger.Note{Type: "sandbox.asked", Data: []byte(`{"why":"<test>"}`)}
		must(l.Begin(ctx, b))(t)
		evs := must(l.Events(ctx, "acme", 1, 0))(t)
		var types []string
		for i, e := range evs {
			types = append(types, e.Type)
			var ce struct{ ID, SpecVersion, Source, Type, Subject, Time, DataContentType string }
			if err := json.Unmarshal(e.CloudEvent, &ce); err != nil {
				t.Fatal(err)
			}
			if ce.ID != e.ID || ce.SpecVersion != "1.0" || ce.Source != "urn:sandboxer:ledger:"+l.ID() || ce.Subject != string(s.ID) ||
				ce.DataContentType != "application/json" {
				t.Errorf("%s", e.CloudEvent)
			}
			if at, err := time.Parse(time.RFC3339, ce.Time); err != nil || !at.Equal(e.Time) {
				t.Errorf("time %q: %v", ce.Time, err)
			}
			if e.Seq != int64(i+1) || i > 0 && e.PrevHash != evs[i-1].ID {
				t.Errorf("event %d does not follow", e.Seq)
			}
		}
		if d := cmp.Diff([]string{"sandbox.requested", "sandbox.provisioning", "sandbox.ready"}, types); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		head := must(l.Head(ctx, "acme"))(t)
		if head != (ledger.Head{Ledger: l.ID(), Stream: "acme", Seq: 3, Hash: evs[2].ID}) {
			t.Fatalf("%+v", head)
		}
		if part := must(l.Events(ctx, "acme", 2, 1))(t); len(part) != 1 || part[0].Seq != 2 {
			t.Fatalf("%+v", part)
		}
		if own := must(l.Events(ctx, "umbrella", 1, 0))(t); len(own) != 1 || own[0].Type != "sandbox.asked" {
			t.Fatalf("%+v", own)
		}
		verified(t, l, head, must(l.Head(ctx, "umbrella"))(t), must(l.Head(ctx, "nobody"))(t))
	})
	t.Run("the same operations give the same chain", func(t *testing.T) {
		t.Parallel()
		id, snap := newID(t), newSnapshotID(t)
		var heads []ledger.Head
		for range 2 {
			clock := &Clock{at: Start}
			l := open(t, address(t), sqlstore.Options{Now: clock.Now, Rand: same{}})
			s := must(l.Begin(ctx, want(id, holderOf(t, l), "n")))(t)
			s = must(l.Apply(ctx, provisioning(s)))(t)
			s = must(l.Apply(ctx, ready(s)))(t)
			must(l.BeginSnapshot(ctx, ledger.BeginSnapshot{Key: "s", Holder: holderOf(t, l), ID: snap, Account: Account, SandboxID: id}))(t)
			must(l.PutHost(ctx, ledger.Host{Account: Account, Name: "one", Ref: "{}"}))(t)
			gone(t, l, s)
			heads = append(heads, must(l.Head(ctx, "acme"))(t))
		}
		if heads[0] != heads[1] || heads[0].Seq != 7 {
			t.Fatalf("%+v", heads)
		}
	})
	t.Run("a cut or foreign chain is found by a pinned head", func(t *testing.T) {
		t.Parallel()
		l := fresh(t, address)
		made(t, l, "n")
		head := must(l.Head(ctx, "acme"))(t)
		for name, pin := range map[string]ledger.Head{
			"rewritten":      {Ledger: head.Ledger, Stream: head.Stream, Seq: head.Seq, Hash: "00"},
			"cut off":        {Ledger: head.Ledger, Stream: head.Stream, Seq: head.Seq + 1, Hash: head.Hash},
			"another ledger": {Ledger: "x", Stream: head.Stream, Seq: 1, Hash: head.Hash},
		} {
			if r := must(l.Verify(ctx, head, pin))(t); len(r.Problems) != 1 {
				t.Errorf("%s: %q", name, r.Problems)
			}
		}
	})
}
