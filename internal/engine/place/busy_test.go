package place

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// atWork answers Find as a place whose script has outlived the run that
// started it: it is busy for a while.
type atWork struct {
	extensions.Backend
	looks, busy int
	pause       time.Duration
}

func (b *atWork) Find(_ context.Context, id extensions.ID) (extensions.Handle, error) {
	b.looks++
	if b.looks > b.busy {
		return extensions.Handle{Extension: "x", Version: 1, ID: id, Ref: "r"}, nil
	}
	e := extensions.Errorf(extensions.KindConflict, "create runs there")
	e.RetryAfter = b.pause
	return extensions.Handle{}, &extensions.Error{Kind: extensions.KindConflict, Op: "find", Err: e}
}

func TestWhatIsStillWorkedOnIsWaitedFor(t *testing.T) {
	t.Parallel()
	places := New(Options{Catalog: &catalog.Catalog{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	find := func(b *atWork) (extensions.Handle, error) {
		o := &Backend{opened: &opened{backend: b, places: places,
			Binding: catalog.Binding{ID: "ext.x", Descriptor: extensions.Descriptor{Find: extensions.Find{Strength: extensions.FindStrong}}}}}
		return o.FindSettled(t.Context(), "sbx-aaaaaaaaaaaaaaaaaaaa", time.Now().Add(time.Hour))
	}
	b := &atWork{busy: 3, pause: time.Millisecond}
	if h, err := find(b); err != nil || h.IsZero() || b.looks != 4 {
		t.Errorf("%v, %v after %d looks", h, err, b.looks)
	}
	// Somebody else's object is no operation that ends.
	b = &atWork{busy: 3}
	if _, err := find(b); !extensions.IsKind(err, extensions.KindConflict) || b.looks != 1 {
		t.Errorf("%v after %d looks", err, b.looks)
	}
}

// taking lists a snapshot only after it was taken, and once more than that: its list is older than its word that it is idle.
type taking struct {
	extensions.Backend
	extensions.Snapshotter
	looks int
}

func (b *taking) FindSnapshot(_ context.Context, id string) (extensions.Snapshot, error) {
	switch b.looks++; b.looks {
	case 1:
		e := extensions.Errorf(extensions.KindConflict, "it takes one")
		e.RetryAfter = 1100 * time.Millisecond
		return extensions.Snapshot{}, e
	case 2:
		return extensions.Snapshot{}, extensions.Errorf(extensions.KindIndeterminate, "it does not list it")
	}
	return extensions.Snapshot{Handle: extensions.SnapshotHandle{Extension: "x", Version: 1, ID: id, Ref: "r"}}, nil
}

// A snapshot takes longer than lists lag: that time does not count towards its absence.
func TestASnapshotThatWasBeingTakenIsLookedForAgain(t *testing.T) {
	t.Parallel()
	places := New(Options{Catalog: &catalog.Catalog{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	b := &taking{}
	o := &Backend{opened: &opened{backend: b, places: places, Binding: catalog.Binding{ID: "ext.x", Descriptor: extensions.Descriptor{
		Powers:    []extensions.Power{extensions.PowerSnapshot},
		Snapshots: extensions.Snapshots{Find: extensions.Find{Strength: extensions.FindEventual, Settle: time.Second}}}}}}
	if h, err := o.FindSnapshotSettled(t.Context(), "snp-aaaaaaaaaaaaaaaaaaaa"); err != nil || h.Ref != "r" {
		t.Errorf("%+v, %v after %d looks", h, err, b.looks)
	}
}
