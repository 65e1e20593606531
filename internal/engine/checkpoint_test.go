package engine_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func newCheckpoint(t *testing.T, from string) *bench {
	t.Helper()
	return newBench(t, onFiles(map[string]string{
		"profiles/from.yaml": "id: profile.from\nversion: \"1.0.0\"\nextension: ext.saas-stub\nfrom_snapshot: " + from + "\n" +
			common,
	}))
}

// A profile names the snapshot that its sandboxes start from; the request's own wins.
func TestAProfileNamesWhatItsSandboxesStartFrom(t *testing.T) {
	t.Parallel()
	b := newCheckpoint(t, "base")
	source := b.create(engine.Request{Name: "source"})
	write := func(word string) {
		t.Helper()
		if _, err := b.Exec(t.Context(), source.Receipt, engine.ExecRequest{Shell: "printf " + word + " >f"}); err != nil {
			t.Fatal(told(err))
		}
	}
	write("base")
	base := b.keep(source, engine.SnapshotRequest{Name: "base"})
	write("other")
	other := b.keep(source, engine.SnapshotRequest{Name: "other"})
	first := b.create(engine.Request{Profile: "profile.from", Name: "first"})
	if got := content(t, b.Engine, first); got != "base" {
		t.Errorf("it starts with %q", got)
	}
	own := b.create(engine.Request{Profile: "profile.from", Name: "own", FromSnapshot: other.ID})
	if got := content(t, b.Engine, own); got != "other" {
		t.Errorf("the request's own snapshot gave %q", got)
	}
	unchanged := func(when string) {
		t.Helper()
		req := engine.Request{Profile: "profile.from", Name: "first"}
		if ns, err := b.PlanUpdate(t.Context(), first.Receipt, req, req); err != nil || len(ns) != 0 {
			t.Errorf("%s, a plan of what was made tells %+v, %v", when, ns, told(err))
		}
	}
	unchanged("at once")
	plain := b.create(engine.Request{Name: "plain"})
	rows := map[string]string{}
	for _, s := range []engine.Sandbox{first, own, plain} {
		row, err := b.book().Get(t.Context(), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		rows[s.Name] = row.SpecHash
	}
	if rows["first"] == rows["own"] {
		t.Error("what they start from is not in the hash of their specs")
	}
	// Another one of the name says nothing about which is meant.
	twin := b.keep(source, engine.SnapshotRequest{Name: "base"})
	refused(t, b, "has 2 snapshots named base")
	for _, snap := range []engine.SnapshotView{base, twin, other} {
		if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
			t.Fatal(told(err))
		}
	}
	refused(t, b, "has 0 snapshots named base")
	unchanged("without the snapshot")
	b.end(source, first, own, plain)
	b.clean()
}

func refused(t *testing.T, b *bench, says string) {
	t.Helper()
	req := engine.Request{Profile: "profile.from", Name: "refused"}
	_, planned := b.Plan(t.Context(), req)
	_, made := b.Create(t.Context(), req, nil, nil)
	for when, err := range map[string]error{"plan": planned, "create": made} {
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(told(err), says) {
			t.Errorf("%s: %v, want %q", when, told(err), says)
		}
	}
}

func TestAProfilesCheckpointElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	b := newCheckpoint(t, "base")
	source := b.create(engine.Request{Profile: "profile.eventual", Name: "source"})
	snap := b.keep(source, engine.SnapshotRequest{Name: "base"})
	_, err := b.Plan(t.Context(), engine.Request{Profile: "profile.from", Name: "two"})
	if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(told(err), "lives in ext.saas-stub-eventual") {
		t.Errorf("a plan: %v", told(err))
	}
	if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
		t.Error(told(err))
	}
	b.end(source)
	b.clean()
}
