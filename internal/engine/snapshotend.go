package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// DeleteSnapshot removes a snapshot; gone already is success. It needs no
// live sandbox and is never blocked by the ledger: one that does not know the
// snapshot, or cannot be written, learns of it at another time. replaced: the
// caller is about to take another in its place, which the ledger has to record.
// The notices tell of an end that is not recorded yet.
func (e *Engine) DeleteSnapshot(ctx context.Context, v SnapshotView, replaced bool) ([]Notice, error) {
	b, h, err := e.snapshotPlace(ctx, v)
	if err != nil {
		return nil, err
	}
	l, stored, err := e.snapshotToEnd(ctx, v.ID)
	switch {
	case err == nil && stored.State == ledger.SnapshotDeleted:
		return nil, nil
	case err == nil:
		var gone bool
		gone, err = e.endSnapshot(ctx, l, b, stored)
		switch {
		case !ledgerDown(ctx, err) || !fromLedger(err):
			return nil, err
		case gone:
			return []Notice{{Summary: "The end of snapshot " + v.ID + " is not recorded yet",
				Detail: fmt.Sprintf("It is gone, and the ledger could not record that: %s. What to do: nothing; the next run that changes anything records it.", err)}}, nil
		}
	}
	if ctx.Err() != nil {
		return nil, place.Classify("delete-snapshot", "", ctx.Err())
	}
	if replaced {
		down := err
		if absent(err) {
			_, down = e.writer(ctx)
		}
		if down != nil {
			err := failClosed(down, fmt.Sprintf("snapshot %s was left as it is, and not replaced", v.ID))
			return nil, err.WithRemedy("%s; then apply again. To delete it without another in its place, destroy it: that needs no ledger", err.Remedy)
		}
	}
	if !absent(err) {
		e.log.Warn("the snapshot is deleted without the ledger", slog.String("snapshot", v.ID), slog.Any("error", err))
	}
	return nil, b.RemoveSnapshot(ctx, v.ID, h)
}

func (e *Engine) snapshotToEnd(ctx context.Context, id string) (ledger.Ledger, ledger.Snapshot, error) {
	r, err := e.reader(ctx)
	if err != nil {
		return nil, ledger.Snapshot{}, err
	}
	if _, err := r.GetSnapshot(ctx, id); err != nil {
		return nil, ledger.Snapshot{}, err // nothing to close here, so nothing is made here
	}
	l, err := e.changer(ctx)
	if err != nil {
		return nil, ledger.Snapshot{}, err
	}
	s, err := l.GetSnapshot(ctx, id)
	return l, s, err
}

// endSnapshot removes a snapshot and records it; gone: it is removed, whether
// that could be recorded or not.
func (e *Engine) endSnapshot(ctx context.Context, l ledger.Ledger, b *place.Backend, s ledger.Snapshot) (gone bool, err error) {
	holder, err := l.Holder(ctx)
	if err != nil {
		return false, err
	}
	key, err := e.operationKey(ledger.IntentDeleteSnapshot, ID(s.ID))
	if err != nil {
		return false, err
	}
	release, err := e.turns.take(ctx, s.ID)
	if err != nil {
		return false, place.Classify("delete-snapshot", "", err)
	}
	defer release()
	if s, err = l.GetSnapshot(ctx, s.ID); err != nil || s.State == ledger.SnapshotDeleted {
		return false, err
	}
	c := ledger.SnapshotChange{ID: s.ID, Key: key, Intent: &ledger.OpenIntent{Key: key, Kind: ledger.IntentDeleteSnapshot, Holder: holder, Supersede: true}}
	if s.State != ledger.SnapshotDeleting {
		c.To = ledger.SnapshotDeleting
	}
	if s, err = l.ApplySnapshot(ctx, c); err != nil {
		return false, err
	}
	done := ledger.SnapshotChange{ID: s.ID, Key: key + "/done", Expect: ledger.SnapshotExpect{Fence: s.Fence, Holder: holder}, To: ledger.SnapshotDeleted,
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}}
	cause := b.RemoveSnapshot(ctx, s.ID, s.Handle)
	if cause != nil {
		reason := extensions.Clean(cause.Error(), 500)
		done.To, done.Patch.Reason, done.Finish = ledger.SnapshotFailed, &reason, &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason}
	} else {
		now := e.now()
		done.Patch.EndedAt = &now
	}
	_, err = applySnapshot(ctx, l, done)
	return cause == nil, errors.Join(cause, err)
}

// recoverSnapshot removes what an unfinished snapshot left; a finished one
// stays.
func (e *Engine) recoverSnapshot(ctx context.Context, l ledger.Ledger, in ledger.Intent) error {
	s, err := l.GetSnapshot(ctx, in.Subject)
	if err != nil {
		return err
	}
	b, err := e.places.Open(ctx, place.Address{Binding: s.Extension, Account: s.Account, Host: s.HostRef})
	if err != nil {
		return err
	}
	if err := b.Can(extensions.PowerSnapshot); err != nil {
		return err
	}
	_, err = e.endSnapshot(ctx, l, b, s)
	return stale(err)
}

func snapshotView(s ledger.Snapshot) SnapshotView {
	return SnapshotView{ID: s.ID, Account: s.Account, Name: s.Name, SandboxID: s.SandboxID, Extension: s.Extension, Host: s.HostRef,
		Handle: encodeSnapshot(s.Handle), Kind: s.Kind, SizeBytes: s.SizeBytes, Digest: s.Digest, CreatedAt: s.CreatedAt.Truncate(time.Microsecond)}
}

func encodeSnapshot(h extensions.SnapshotHandle) string {
	if h.ID == "" {
		return ""
	}
	return string(mustJSON(h))
}
