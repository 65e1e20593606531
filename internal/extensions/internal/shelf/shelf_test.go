package shelf_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shelf"
)

const (
	id      = "snp-aaaaaaaaaaaaaaaaaaaa"
	other   = "snp-bbbbbbbbbbbbbbbbbbbb"
	sandbox = "sbx-aaaaaaaaaaaaaaaaaaaa"
)

// on is a shelf of names by their refs, and what was dropped from it. late hides all from lists by id.
func on(names map[string]string, late bool) (*shelf.Shelf, *[]string) {
	dropped := &[]string{}
	made := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	return &shelf.Shelf{Vendor: "Acme", Handler: "acme", Version: 1, Ref: regexp.MustCompile(`^im-[a-z]+$`),
		Declared: extensions.Snapshots{Kinds: []extensions.SnapshotKind{extensions.SnapshotFilesystem}, Expires: time.Hour,
			Find: extensions.Find{Strength: extensions.FindEventual, Settle: time.Minute}},
		Each: func(_ context.Context, _, ref string, until func(shelf.Named) bool) error {
			if _, there := names[ref]; ref != "" && !there {
				return extensions.Errorf(extensions.KindNotFound, "none")
			}
			for _, r := range slices.Sorted(maps.Keys(names)) {
				if (ref != "" || !late) && until(shelf.Named{Name: names[r], Ref: r, At: made}) {
					break
				}
			}
			return nil
		},
		Take: func(_ context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (shelf.Named, error) {
			names["im-new"] = spec.ID + ":" + string(h.ID)
			return shelf.Named{Name: names["im-new"], Ref: "im-new"}, nil
		},
		Drop: func(_ context.Context, ref string) error {
			*dropped = append(*dropped, ref)
			delete(names, ref)
			return nil
		}}, dropped
}

func handle(id, ref string) extensions.SnapshotHandle {
	return extensions.SnapshotHandle{Extension: "acme", Version: 1, ID: id, Ref: ref}
}

// A name tells of a snapshot; what is not listed is not proved absent, and what a name says of another one is no answer.
func TestANameTellsOfASnapshot(t *testing.T) {
	t.Parallel()
	s, _ := on(map[string]string{"im-a": "team/" + id + "-" + sandbox + ":v2", "im-b": id + ":somebody", "im b": other + ":" + sandbox}, false)
	found, err := s.FindSnapshot(t.Context(), id)
	if err != nil || found.Handle.Ref != "im-a" || found.SandboxID != sandbox || found.Kind != extensions.SnapshotFilesystem ||
		found.ExpiresAt.Sub(found.CreatedAt) != time.Hour {
		t.Errorf("%+v, %v", found, err)
	}
	for asked, kind := range map[string]extensions.Kind{other: extensions.KindIndeterminate, "snp-": extensions.KindInvalid} {
		if _, err := s.FindSnapshot(t.Context(), asked); !extensions.IsKind(err, kind) {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

// What is being taken, and not listed yet, is a reason to ask again, for as long as it is.
func TestWhatIsBeingTakenIsNotAbsent(t *testing.T) {
	t.Parallel()
	names, of := map[string]string{}, "a"
	s, _ := on(names, false)
	s.Taking = func(context.Context) (string, error) { return of, nil }
	_, err := s.FindSnapshot(t.Context(), id)
	var e *extensions.Error
	if !errors.As(err, &e) || e.Kind != extensions.KindConflict || e.RetryAfter <= 0 {
		t.Errorf("while it is taken: %v", err)
	}
	names["im-a"] = id + ":" + sandbox
	if found, err := s.FindSnapshot(t.Context(), id); err != nil || found.Handle.Ref != "im-a" {
		t.Errorf("beside another that is taken: %+v, %v", found, err)
	}
	delete(names, "im-a")
	of = ""
	if _, err := s.FindSnapshot(t.Context(), id); !extensions.IsKind(err, extensions.KindIndeterminate) {
		t.Errorf("when none is taken: %v", err)
	}
}

// A snapshot is taken once, and what a list has not shown yet is taken under the same name.
func TestASnapshotIsTakenOnce(t *testing.T) {
	t.Parallel()
	h := extensions.Handle{Extension: "acme", Version: 1, ID: sandbox, Ref: "a"}
	spec := extensions.SnapshotSpec{ID: id, CreatedAt: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)}
	names := map[string]string{}
	s, _ := on(names, false)
	for range 2 {
		made, err := s.Snapshot(t.Context(), h, spec)
		if err != nil || made.Handle.Ref != "im-new" || made.CreatedAt.IsZero() || len(names) != 1 {
			t.Errorf("%+v, %v, %v", made, err, names)
		}
	}
	late, _ := on(names, true)
	if made, err := late.Snapshot(t.Context(), h, spec); err != nil || made.Handle.Ref != "im-new" || !made.CreatedAt.Equal(spec.CreatedAt) {
		t.Errorf("a list that lags: %+v, %v", made, err)
	}
	sure, _ := on(map[string]string{"im-half": id + ":" + sandbox}, false)
	sure.Sure = true
	if made, err := sure.Snapshot(t.Context(), h, spec); err != nil || made.Handle.Ref != "im-new" {
		t.Errorf("one that a list may show half: %+v, %v", made, err)
	}
	if _, err := sure.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: "snp-"}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("no id: %v", err)
	}
	spec.Kind = extensions.SnapshotMemory
	if _, err := s.Snapshot(t.Context(), h, spec); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("another kind: %v", err)
	}
}

// Only what has the handle's id in its name is deleted.
func TestOnlyTheHandlesSnapshotIsDeleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h       extensions.SnapshotHandle
		kind    extensions.Kind
		dropped int
	}{
		"its own":           {handle(id, "im-a"), "", 1},
		"one that is gone":  {handle(id, "im-c"), "", 0},
		"another's":         {handle(id, "im-b"), extensions.KindConflict, 0},
		"no name of theirs": {handle(id, "../im-a"), extensions.KindInvalid, 0},
		"of another place":  {extensions.SnapshotHandle{Extension: "other", Version: 1, ID: id, Ref: "im-a"}, extensions.KindInvalid, 0},
	} {
		s, dropped := on(map[string]string{"im-a": id + ":" + sandbox, "im-b": other + ":" + sandbox}, false)
		if err := s.DeleteSnapshot(t.Context(), c.h); extensions.KindOf(err) != c.kind || len(*dropped) != c.dropped {
			t.Errorf("%s: %v, dropped %v", name, err, *dropped)
		}
	}
	s, _ := on(nil, false)
	err := s.CheckFrom(&extensions.SnapshotRef{Handle: handle("x", "im-a")})
	unknown := s.CheckFrom(&extensions.SnapshotRef{ID: "snp-aaaaaaaaaaaaaaaaaaaa"}) // to the ledger: it is looked for later
	if extensions.FieldOf(err) != "from_snapshot" || s.CheckFrom(nil) != nil || unknown != nil {
		t.Errorf("%v", err)
	}
}
