package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// quota gives the vendor of a place a limit.
func (w *bench) quota(limit int64, rules ...saasstub.Rule) {
	w.t.Helper()
	if err := saasstub.WriteScript(w.vendor, saasstub.Script{Quota: &limit, Rules: rules}); err != nil {
		w.t.Fatal(err)
	}
}

// What a vendor holds that this ledger knows nothing of takes room all the same:
// a full place is left out before anything is tried there.
func TestAPlaceThatSaysItIsFullIsLeftOut(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.quota(1)
	there := w.elsewhere()
	theirs, err := there.Create(t.Context(), engine.Request{Profile: "profile.first", Name: "theirs"}, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	req := engine.Request{Profile: "profile.two", Name: "one"}
	if p, err := w.Plan(t.Context(), req); err != nil || p.Route.Order[0] != "ext.first" {
		t.Errorf("a plan asks nobody: %v, %s", p.Route.Order, told(err))
	}
	s, err := w.Create(t.Context(), req, nil, nil)
	if err != nil || s.Extension != "ext.second" || len(s.Route.Attempts) != 1 ||
		strings.Join(refusedBy(s, "ext.first"), " ") != "viability.capacity" {
		t.Fatalf("%s, %+v", told(err), s.Route)
	}
	if _, err := w.Create(t.Context(), engine.Request{Profile: "profile.first", Name: "two"}, nil, nil); !extensions.IsKind(err,
		extensions.KindExhausted) ||
		!strings.Contains(told(err), "it is full: it has 1 of at most 1 sandboxes (viability.capacity)") {
		t.Errorf("pinned there: %s", told(err))
	}
	// What is replaced makes room for what replaces it.
	if theirs, err = there.Recreate(t.Context(), theirs.Receipt, nil, nil); err != nil {
		t.Errorf("made anew at its own place: %s", told(err))
	}
	if _, err := there.Destroy(t.Context(), theirs.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(told(err))
	}
	again, err := w.Create(t.Context(), engine.Request{Profile: "profile.two", Name: "three"}, nil, nil)
	if err != nil || again.Extension != "ext.first" {
		t.Errorf("there is room again: %s, %s", again.Extension, told(err))
	}
	w.end(s, again)
}

// A place that does not tell is neither full nor without end: it is tried, and
// what it says then counts.
func TestAPlaceThatDoesNotTellItsRoomIsTried(t *testing.T) {
	t.Parallel()
	for _, do := range []vendor.Action{vendor.DoUnavailable, vendor.DoUnreachable, vendor.DoHangBefore} {
		t.Run(string(do), func(t *testing.T) {
			t.Parallel()
			w := newTwo(t)
			w.quota(0, saasstub.Rule{Op: vendor.OpCapacity, Do: do})
			s, err := w.Create(t.Context(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
			if err != nil || s.Extension != "ext.second" || len(s.Route.Attempts) != 2 || s.Route.Attempts[0].Outcome != "exhausted" ||
				slices.Contains(refusedBy(s, "ext.first"), "viability.capacity") {
				t.Fatalf("%s, %+v", told(err), s.Route)
			}
			w.end(s)
		})
	}
}
