package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Snapshot keeps a checkpoint of a live sandbox. Whenever one may exist the
// returned view has an ID, error or not.
func (e *Engine) Snapshot(ctx context.Context, rec Receipt, name string) (SnapshotView, error) {
	if name != "" {
		if err := CheckName(name); err != nil {
			return SnapshotView{}, err
		}
	}
	l, row, err := e.rowToChange(ctx, rec, nil)
	if err != nil {
		return SnapshotView{}, err
	}
	b, err := e.places.Open(ctx, placeOf(row))
	if err != nil {
		return SnapshotView{}, err
	}
	if err := b.Can(extensions.PowerSnapshot); err != nil {
		return SnapshotView{}, err
	}
	holder, err := l.Holder(ctx)
	if err != nil {
		return SnapshotView{}, leftAlone(row, err)
	}
	id, err := extensions.NewSnapshotID(e.opts.Rand)
	if err != nil {
		return SnapshotView{}, err
	}
	if name == "" {
		name = id
	}
	release, err := e.turns.take(context.WithoutCancel(ctx), id) // its id is new: there is nobody to wait for
	if err != nil {
		return SnapshotView{}, err
	}
	defer release()
	key := string(ledger.IntentSnapshot) + "/" + id
	s, err := l.BeginSnapshot(ctx, ledger.BeginSnapshot{Key: key, Holder: holder, ID: id, Account: row.Account, Name: name, SandboxID: row.ID,
		Extension: row.Extension, Host: row.Host, HostRef: row.HostRef, CreatedAt: e.now()})
	if err != nil {
		return SnapshotView{}, leftAlone(row, err)
	}
	if err := failpoint.Hit(ctx, pointSnapshotBegun); err != nil {
		return e.snapshotFailed(ctx, l, b, s, holder, err)
	}
	var made extensions.Snapshot
	err = held(ctx, l, func(ctx context.Context) (err error) {
		made, err = b.Snapshot(ctx, row.Handle, extensions.SnapshotSpec{ID: id, Name: name, Account: row.Account, CreatedAt: s.CreatedAt})
		return err
	})
	if err == nil {
		err = failpoint.Hit(ctx, pointSnapshotMade)
	}
	if err != nil {
		return e.snapshotFailed(ctx, l, b, s, holder, err)
	}
	kept, err := applySnapshot(ctx, l, ledger.SnapshotChange{ID: id, Key: key + "/ready", Expect: ledger.SnapshotExpect{Fence: s.Fence, Holder: holder},
		To:     ledger.SnapshotReady,
		Patch:  ledger.SnapshotPatch{Handle: &made.Handle, Kind: &made.Kind, SizeBytes: &made.SizeBytes, Digest: &made.Digest},
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}})
	if err != nil {
		s.Handle = made.Handle
		return e.snapshotFailed(ctx, l, b, s, holder, notRecorded(err))
	}
	return snapshotView(kept), failpoint.Hit(ctx, pointSnapshotKept)
}

// applySnapshot takes one step that has to be recorded, whatever the caller
// does; its key makes it happen once.
func applySnapshot(ctx context.Context, l ledger.Ledger, c ledger.SnapshotChange) (ledger.Snapshot, error) {
	s, err := l.ApplySnapshot(context.WithoutCancel(ctx), c)
	if extensions.IsKind(err, extensions.KindIndeterminate) {
		s, err = l.ApplySnapshot(context.WithoutCancel(ctx), c)
	}
	return s, err
}

// snapshotFailed removes what a failed snapshot may have left.
func (e *Engine) snapshotFailed(ctx context.Context, l ledger.Ledger, b *place.Backend, s ledger.Snapshot, holder ledger.HolderID, cause error) (SnapshotView, error) {
	sctx, cancel := settling(ctx)
	defer cancel()
	err := b.RemoveSnapshot(sctx, s.ID, s.Handle)
	to, out := ledger.SnapshotDeleted, SnapshotView{}
	if err != nil {
		to, out = ledger.SnapshotFailed, snapshotView(s)
	}
	reason := extensions.Clean(cause.Error(), 500)
	_, lerr := applySnapshot(sctx, l, ledger.SnapshotChange{ID: s.ID, Key: string(ledger.IntentSnapshot) + "/" + s.ID + "/failed",
		Expect: ledger.SnapshotExpect{Fence: s.Fence, Holder: holder}, To: to, Patch: ledger.SnapshotPatch{Reason: &reason},
		Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason}})
	if lerr != nil {
		out = snapshotView(s) // the ledger still has it under way
	}
	return out, errors.Join(cause, err, lerr)
}

// GetSnapshot observes a snapshot; it needs no live sandbox and no ledger.
// NotFound = proved absent.
func (e *Engine) GetSnapshot(ctx context.Context, s SnapshotView) (SnapshotView, error) {
	b, h, err := e.snapshotPlace(ctx, s)
	if err != nil {
		return s, err
	}
	if h.ID == "" {
		if h, err = b.FindSnapshot(ctx, s.ID); err != nil {
			return s, err
		}
	}
	got, err := b.StatSnapshot(ctx, h)
	if err != nil {
		return s, err
	}
	s.Handle, s.Kind, s.SizeBytes, s.Digest = encodeSnapshot(got.Handle), got.Kind, got.SizeBytes, got.Digest
	return s, nil
}

func (e *Engine) snapshotPlace(ctx context.Context, s SnapshotView) (*place.Backend, extensions.SnapshotHandle, error) {
	var h extensions.SnapshotHandle
	if !extensions.ValidSnapshotID(s.ID) {
		return nil, h, extensions.Invalid("%q is not a snapshot id", "use the id of a sandboxer_snapshot", extensions.Clean(s.ID, 80))
	}
	if s.Handle != "" {
		if err := json.Unmarshal([]byte(s.Handle), &h); err != nil {
			return nil, h, extensions.Invalid("the handle of snapshot %s cannot be read: %w", "import the snapshot by its id", s.ID, err)
		}
	}
	b, err := e.places.Open(ctx, place.Address{Binding: s.Extension, Account: s.Account, Host: s.Host})
	if err != nil {
		return nil, h, err
	}
	return b, h, b.Can(extensions.PowerSnapshot)
}

// LookupSnapshot finds a snapshot in the ledger by id.
func (e *Engine) LookupSnapshot(ctx context.Context, id string) (SnapshotView, error) {
	l, err := e.reader(ctx)
	if err != nil {
		return SnapshotView{}, err
	}
	s, err := l.GetSnapshot(ctx, id)
	what := "does not know snapshot " + extensions.Clean(id, 80)
	if err == nil && s.State == ledger.SnapshotDeleted {
		err = extensions.Errorf(extensions.KindNotFound, "deleted")
		what = "says that snapshot " + s.ID + " was deleted at " + s.EndedAt.UTC().Format(time.RFC3339)
	}
	if absent(err) {
		return SnapshotView{}, extensions.Errorf(extensions.KindNotFound, "the ledger %s %s", l.URL(), what).
			WithRemedy("check the id, and the provider's ledger, state_dir and account")
	}
	if err != nil {
		return SnapshotView{}, err
	}
	return snapshotView(s), nil
}
