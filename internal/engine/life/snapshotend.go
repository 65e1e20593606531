package life

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// DeleteSnapshot removes a snapshot; one already gone is success. It needs no live sandbox, and the ledger
// never blocks it: a ledger that cannot be written learns of it by a sweep.
// replaced says that the caller is about to take another in its place, of v.SandboxID ("" = not known yet): that must
// not have ended, and the ledger must be able to record it. The notices report an end that is not recorded yet.
func (m *Manager) DeleteSnapshot(ctx context.Context, v SnapshotView, replaced bool) ([]notice.Notice, error) {
	b, h, err := m.snapshotPlace(ctx, v)
	if err != nil {
		return nil, err
	}
	if replaced {
		if err := m.checkSource(ctx, v.SandboxID); err != nil {
			return nil, err
		}
	}
	l, stored, err := m.snapshotToEnd(ctx, v.ID)
	switch {
	case err == nil && stored.State == ledger.SnapshotDeleted:
		return nil, nil
	case err == nil:
		if b, err = m.places.Open(ctx, keptAt(stored)); err != nil {
			return nil, err
		}
		var gone bool
		gone, err = m.endSnapshot(ctx, l, b, stored, nil, nil)
		switch {
		case !ledgerDown(ctx, err) || !fromLedger(err):
			return nil, err
		case gone:
			return []notice.Notice{{Summary: "The deletion of snapshot " + v.ID + " is not recorded yet",
				Detail: fmt.Sprintf("The snapshot is gone, but the ledger could not record that: %s. You need not do anything: the next run that "+
					"changes something records it.",
					err)}}, nil
		}
	}
	if ctx.Err() != nil {
		return nil, extensions.Classify("delete-snapshot", "", "", ctx.Err())
	}
	if replaced {
		down := err
		if absent(err) {
			_, down = m.book.Writer(ctx)
		}
		if down != nil {
			err := failClosed(down, fmt.Sprintf("snapshot %s was not replaced", v.ID))
			return nil, err.WithRemedy("%s; then apply again. To delete it without a replacement, destroy it: that needs no ledger", err.Remedy)
		}
	}
	if gone := b.RemoveSnapshot(ctx, v.ID, h.SnapshotHandle); gone != nil || absent(err) {
		return nil, gone
	}
	return []notice.Notice{{Summary: "The deletion of snapshot " + v.ID + " is not recorded",
		Detail: fmt.Sprintf("The snapshot is gone, but the ledger still counts it: %s. What to do: run `sandboxer sweep` once the ledger can be "+
			"read and written. It settles the snapshot.", err)}}, nil
}

// snapshotToEnd returns the record, after settling what dead runs left: their sandboxes may run from the snapshot.
func (m *Manager) snapshotToEnd(ctx context.Context, id string) (*ledger.Ledger, ledger.Snapshot, error) {
	r, err := m.book.Reader(ctx)
	if err != nil {
		return nil, ledger.Snapshot{}, err
	}
	if _, err := r.GetSnapshot(ctx, id); err != nil {
		return nil, ledger.Snapshot{}, err // nothing to close, so no ledger is created
	}
	l, err := m.book.Changer(ctx)
	if err != nil {
		return nil, ledger.Snapshot{}, err
	}
	_ = m.recoverOnce(ctx, nil) // what it leaves open blocks no deletion
	s, err := l.GetSnapshot(ctx, id)
	return l, s, err
}

// endSnapshot removes a snapshot and records that. gone says that it is removed, recorded or not. dead, if set, is the
// operation of a dead run that this one takes over: it stays open if it fails, for the next run. needed, if set,
// is asked once the intent is recorded: a snapshot that is needed stays.
func (m *Manager) endSnapshot(ctx context.Context, l *ledger.Ledger, b *place.Backend, s ledger.Snapshot, dead *ledger.Intent,
	needed func(context.Context) (bool, error)) (gone bool, err error) {
	kind := ledger.IntentDeleteSnapshot
	if dead != nil {
		kind = dead.Kind // it says what else is to be settled
	}
	op, err := m.book.Prepare(ctx, l, kind, s.ID, nil)
	if err != nil {
		return false, err
	}
	defer op.Close()
	if s, err = l.GetSnapshot(ctx, s.ID); err != nil || s.State == ledger.SnapshotDeleted {
		return false, err
	}
	c := ledger.SnapshotChange{ID: s.ID, Key: op.Key,
		Intent: &ledger.OpenIntent{Key: op.Key, Kind: kind, Holder: op.Holder, Supersede: true}}
	if s.State != ledger.SnapshotDeleting {
		c.To = ledger.SnapshotDeleting
	}
	was := s.State
	if s, err = l.ApplySnapshot(ctx, c); err != nil {
		return false, err
	}
	done := ledger.SnapshotChange{ID: s.ID, Key: op.Key + "/done", Expect: ledger.SnapshotExpect{Fence: s.Fence, Holder: op.Holder},
		To:     ledger.SnapshotDeleted,
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}}
	if err := failpoint.Hit(ctx, pointSnapshotEnding); err != nil {
		return false, err
	}
	if needed != nil {
		if stays, err := needed(ctx); stays || err != nil {
			done.To, done.Finish = was, &ledger.FinishIntent{Outcome: ledger.Abandoned, Reason: "it is needed"}
			_, lerr := applySnapshot(ctx, l, done)
			return false, errors.Join(err, lerr)
		}
	}
	if lifecycle.Overdue(m.book.Now(), s.LapsesAt) { // use may have kept it, at a price, since its place said so
		if got, err := b.StatSnapshot(ctx, s.Handle); err == nil {
			s.LapsesAt = got.ExpiresAt
		}
	}
	cause := b.RemoveSnapshot(ctx, s.ID, s.Handle)
	if err := failpoint.Hit(ctx, pointSnapshotGone); err != nil {
		return cause == nil, err
	}
	if cause != nil && dead != nil {
		return false, cause
	}
	if cause != nil {
		reason := extensions.Clean(cause.Error(), 500)
		done.To, done.Patch.Reason, done.Finish = ledger.SnapshotFailed, &reason, &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason}
	} else {
		now := m.book.Now()
		done.Patch.EndedAt, done.Meter.Close = &now, kept(s, now)
	}
	if _, err = applySnapshot(ctx, l, done); err == nil && cause == nil {
		err = failpoint.Hit(ctx, pointSnapshotEnded)
	}
	return cause == nil, errors.Join(cause, err)
}

// recoverSnapshot removes what an unfinished snapshot left; a finished one stays, and one that has ended its sandbox.
func (m *Manager) recoverSnapshot(ctx context.Context, l *ledger.Ledger, in ledger.Intent, notify notice.Notify) error {
	s, err := l.GetSnapshot(ctx, in.Subject)
	if err != nil {
		return err
	}
	b, err := m.places.Open(ctx, keptAt(s))
	if err != nil {
		return err
	}
	if err := b.Can(extensions.PowerSnapshot); err != nil {
		return err
	}
	if in.Kind == ledger.IntentSnapshot && b.Binding.Descriptor.Snapshots.EndsSource {
		return m.finishSnapshot(ctx, l, b, s, notify)
	}
	_, err = m.endSnapshot(ctx, l, b, s, &in, nil)
	err = book.Settled(err)
	if row, rerr := l.Get(ctx, s.SandboxID); rerr == nil && in.Kind == ledger.IntentSnapshot {
		if m.modeLeftOpen(ctx, l, row.ID) { // the dead run was about to resume it
			row.Mode = ledger.Running
		}
		for _, n := range m.goOn(ctx, l, b, row, err == nil) {
			notify.Tell(n.Summary, "%s", n.Detail)
		}
	}
	return err
}

// modeLeftOpen reports that a run died while it changed the mode of a sandbox.
func (m *Manager) modeLeftOpen(ctx context.Context, l *ledger.Ledger, id extensions.ID) bool {
	open, err := l.OpenIntents(ctx, ledger.IntentFilter{Subject: string(id)})
	return err == nil && slices.ContainsFunc(open, func(in ledger.Intent) bool {
		over, err := m.book.Abandoned(ctx, l, in)
		return err == nil && over && in.Kind == ledger.IntentMode
	})
}

func snapshotView(s ledger.Snapshot) SnapshotView {
	var req SnapshotRequest
	_ = json.Unmarshal(s.Request, &req) // shown as far as it can be read
	return SnapshotView{ID: s.ID, Account: s.Account, Name: s.Name, SandboxID: s.SandboxID, Extension: s.Extension,
		Host: s.HostRef, HostName: s.Host,
		Handle: encodeSnapshot(s.Handle, s.Identity), Kind: s.Kind, SizeBytes: s.SizeBytes, Digest: s.Digest, Live: req.Live,
		AllowEnd: req.AllowEnd, State: string(s.State),
		Reason: s.Reason, CreatedAt: s.CreatedAt.Truncate(time.Microsecond), Retention: req.Retention, ExpiresAt: s.ExpiresAt(),
		EndedAt: s.EndedAt}
}

// snapshotPointer is what a state keeps of a snapshot's place.
type snapshotPointer struct {
	extensions.SnapshotHandle
	Identity string `json:"identity,omitempty"` // see place.Address
}

func encodeSnapshot(h extensions.SnapshotHandle, identity string) string {
	if h.ID == "" {
		return ""
	}
	return string(mustJSON(snapshotPointer{h, identity}))
}
