package life

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Snapshots lists the account's snapshots in the ledger, oldest first; all includes deleted ones.
func (m *Manager) Snapshots(ctx context.Context, all bool) ([]SnapshotView, error) {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := l.ListSnapshots(ctx, ledger.SnapshotFilter{Account: m.account, Live: !all})
	out := make([]SnapshotView, 0, len(rows))
	for _, s := range rows {
		out = append(out, snapshotView(s))
	}
	return out, err
}

// CheckSnapshot refuses, in a plan, a snapshot of a sandbox that has ended, and one that its place cannot take, as far as
// the ledger knows them. It also returns notices to show before the snapshot. sandbox is "" if it does not exist yet.
func (m *Manager) CheckSnapshot(ctx context.Context, sandbox extensions.ID, req SnapshotRequest) ([]notice.Notice, error) {
	retention, err := ParseRetention(req.Retention)
	if err != nil {
		return nil, err
	}
	if err := m.checkSource(ctx, sandbox); err != nil {
		return nil, err
	}
	kind, at := extensions.SnapshotKind(req.Kind), ""
	holds := kind == extensions.SnapshotMemory
	var told []notice.Notice
	if b, payer, ok := m.bindingOf(ctx, sandbox); ok {
		if !b.Descriptor.Has(extensions.PowerSnapshot) {
			return nil, extensions.Errorf(extensions.KindUnsupported, "%s keeps no snapshots", b.ID).
				WithRemedy("remove the snapshot, or run its sandbox at a place that keeps snapshots")
		}
		if _, err := req.check(b.Descriptor.Snapshots); err != nil {
			return nil, err
		}
		if err := m.checkEnd(b, payer, retention); err != nil {
			return nil, err
		}
		holds, at = b.Descriptor.Snapshots.HoldsSecrets, " at "+b.ID
		if b.Descriptor.Snapshots.EndsSource {
			told = append(told, notice.Notice{Summary: "The snapshot ends its sandbox",
				Detail: fmt.Sprintf("%s takes no other. Before, sandbox %s does what its profile has for its end. What to do: start another sandbox "+
					"from the snapshot; in Terraform, set on_expiry = \"keep\" for the one that it ends, or the next plan replaces that.", b.ID, sandbox)})
		}
		if kind == "" {
			kind = b.Descriptor.Snapshots.Kinds[0]
		}
	}
	if !holds {
		return told, nil
	}
	what := "A snapshot"
	if kind != "" {
		what = "A " + string(kind) + " snapshot"
	}
	return append(told, notice.Notice{Summary: "The snapshot may hold secrets",
		Detail: what + at + " includes the secrets of its sandbox, and everybody who may start a sandbox from it gets them. What to do: set " +
			"retention, or delete it when you no longer need it, and renew the secrets then."}), nil
}

// checkSource refuses to take a snapshot of a sandbox that has ended, or that the ledger does not know. id is "" if it does not
// exist yet.
func (m *Manager) checkSource(ctx context.Context, id extensions.ID) error {
	if id == "" {
		return nil
	}
	l, err := m.book.Reader(ctx)
	var row ledger.Sandbox
	if err == nil {
		row, err = l.Get(ctx, id)
	}
	switch {
	case err == nil:
		err = m.changeable(row)
		if told := onlyCopy(ctx, l, row); err != nil && told != nil {
			return extensions.AtField("sandbox_id", told)
		}
	case absent(err):
		err = m.unknownHere(id)
	default:
		return nil // what is wrong with the ledger is told where it is needed
	}
	if err == nil {
		return nil
	}
	return extensions.AtField("sandbox_id", extensions.Errorf(extensions.KindConflict, "no snapshot can be taken: %w", err).
		WithRemedy("choose a live sandbox of this ledger. To keep a snapshot that this one would replace, undo the change of its arguments"))
}

// bindingOf returns the binding of a sandbox and who pays for it, if the ledger and the catalog know it.
func (m *Manager) bindingOf(ctx context.Context, id extensions.ID) (b catalog.Binding, payer string, ok bool) {
	l, err := m.book.Reader(ctx)
	if err != nil || id == "" {
		return b, "", false
	}
	row, err := l.Get(ctx, id)
	if err == nil {
		b, err = m.catalog.Named(row.Extension)
	}
	return b, row.Payer, err == nil
}

// CheckRetention refuses, in a plan, a retention that Retain would refuse, as far as the ledger knows the
// snapshot.
func (m *Manager) CheckRetention(ctx context.Context, id, retention string) error {
	kept, err := ParseRetention(retention)
	if err != nil {
		return err
	}
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil // it is told where it is needed
	}
	s, err := l.GetSnapshot(ctx, id)
	if err != nil {
		return nil
	}
	return m.checkRetained(s, kept)
}

func (m *Manager) checkRetained(s ledger.Snapshot, kept time.Duration) error {
	b, err := m.catalog.Named(s.Extension)
	if err != nil {
		return nil // a place that left the catalog
	}
	return m.checkEnd(b, s.Payer, kept)
}

// Retain changes how long a snapshot is kept; see SnapshotRequest.Retention.
func (m *Manager) Retain(ctx context.Context, id, retention string) (SnapshotView, error) {
	kept, err := ParseRetention(retention)
	if err != nil {
		return SnapshotView{}, err
	}
	l, err := m.recovered(ctx, nil)
	if err != nil {
		return SnapshotView{}, err
	}
	op, err := m.book.Prepare(ctx, l, ledger.IntentSnapshot, id, nil)
	if err != nil {
		return SnapshotView{}, err
	}
	defer op.Close()
	if _, err := m.LookupSnapshot(ctx, id); err != nil { // recovery may just have ended it
		return SnapshotView{}, err
	}
	s, err := l.GetSnapshot(ctx, id)
	if err != nil {
		return SnapshotView{}, err
	}
	if err := m.checkRetained(s, kept); err != nil {
		return SnapshotView{}, err
	}
	var req SnapshotRequest
	if err := json.Unmarshal(s.Request, &req); err != nil {
		return SnapshotView{}, extensions.Errorf(extensions.KindInternal, "the request of snapshot %s cannot be read: %w", id, err)
	}
	req.Retention = retention
	s, err = applySnapshot(ctx, l, ledger.SnapshotChange{ID: id, Key: op.Key,
		Expect: ledger.SnapshotExpect{States: []ledger.SnapshotState{ledger.SnapshotReady}},
		Patch:  ledger.SnapshotPatch{Retention: &kept, Request: mustJSON(req)}, Event: ledger.NewNote("snapshot.retained", nil)})
	return snapshotView(s), err
}

// overdueSnapshots lists those past their time, also those whose deletion failed, and what failed ones left.
func (m *Manager) overdueSnapshots(ctx context.Context, l *ledger.Ledger) (due []ledger.Snapshot, err error) {
	all, err := l.ListSnapshots(ctx, ledger.SnapshotFilter{Account: m.account, Live: true})
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		over := lifecycle.Overdue(m.book.Now(), s.ExpiresAt())
		if s.State == ledger.SnapshotReady && over || s.State == ledger.SnapshotFailed && (over || m.leftover(s)) {
			due = append(due, s)
		}
	}
	return due, nil
}

// leftover reports that a failed snapshot was never kept, so that nobody waits for what is left of it. One that may have ended
// its sandbox is settled with that.
func (m *Manager) leftover(s ledger.Snapshot) bool {
	b, err := m.catalog.Named(s.Extension)
	return err == nil && unsure(s) && !b.Descriptor.Snapshots.EndsSource
}

// endOverdueSnapshots deletes what is past its time, and what failed ones left. What fails is told and waits for the next run.
func (m *Manager) endOverdueSnapshots(ctx context.Context, l *ledger.Ledger, notify notice.Notify) error {
	due, err := m.overdueSnapshots(ctx, l)
	if err != nil {
		return err
	}
	for _, s := range due {
		if ctx.Err() != nil {
			return extensions.Classify("sweep", "", "", ctx.Err())
		}
		if err := m.endOverdueSnapshot(ctx, l, s); err != nil {
			what := "failed"
			if !m.leftover(s) {
				what = "expired at " + s.ExpiresAt().UTC().Format(time.RFC3339)
			}
			notify.Tell("Not settled yet", "snapshot %s (%s), which %s, could not be deleted: %s", s.ID, s.Name, what, err)
		}
	}
	return nil
}

func (m *Manager) endOverdueSnapshot(ctx context.Context, l *ledger.Ledger, s ledger.Snapshot) error {
	b, err := m.places.Open(ctx, keptAt(s))
	if err == nil {
		err = b.Can(extensions.PowerSnapshot)
	}
	if err != nil {
		return err
	}
	if s.State == ledger.SnapshotReady && !lifecycle.Overdue(m.book.Now(), s.KeptUntil()) { // it lapses, unless use has kept it
		got, err := b.StatSnapshot(ctx, s.Handle)
		switch {
		case err == nil && !lifecycle.Overdue(m.book.Now(), got.ExpiresAt):
			return m.lapsesLater(ctx, l, s, got.ExpiresAt)
		case err != nil && !absent(err):
			return err
		}
	}
	_, err = m.endSnapshot(ctx, l, b, s, nil, func(ctx context.Context) (bool, error) { return m.startsFrom(ctx, l, s.ID) })
	return err
}

// lapsesLater records the new end of a snapshot that its place keeps longer.
func (m *Manager) lapsesLater(ctx context.Context, l *ledger.Ledger, s ledger.Snapshot, end time.Time) error {
	op, err := m.book.Prepare(ctx, l, ledger.IntentSnapshot, s.ID, nil)
	if err != nil {
		return err
	}
	defer op.Close()
	_, err = applySnapshot(ctx, l, ledger.SnapshotChange{ID: s.ID, Key: op.Key,
		Expect: ledger.SnapshotExpect{States: []ledger.SnapshotState{ledger.SnapshotReady}},
		Patch:  ledger.SnapshotPatch{LapsesAt: &end}, Event: ledger.NewNote("snapshot.retained", nil)})
	return book.Settled(err)
}

// startsFrom reports whether a create under way starts from a snapshot.
func (m *Manager) startsFrom(ctx context.Context, l *ledger.Ledger, id string) (bool, error) {
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{})
	if err != nil {
		return false, err
	}
	for _, in := range intents {
		if in.Kind != ledger.IntentCreate && in.Kind != ledger.IntentRecreate {
			continue
		}
		row, err := l.Get(ctx, extensions.ID(in.Subject))
		if err != nil {
			return false, err
		}
		if from := specOf(row).FromSnapshot; from != nil && from.ID == id {
			return true, nil
		}
	}
	return false, nil
}

// stillKept refuses to start from a snapshot whose deletion began before this create did.
func (m *Manager) stillKept(ctx context.Context, l *ledger.Ledger, id string) error {
	s, err := l.GetSnapshot(ctx, id)
	switch {
	case absent(err): // unknown here: its place is asked
		return nil
	case err == nil && (s.State == ledger.SnapshotDeleting || s.State == ledger.SnapshotDeleted):
		return snapshotOver(s, fmt.Sprintf("is %s", s.State))
	}
	return err
}

func snapshotOver(s ledger.Snapshot, what string) error {
	return extensions.AtField("from_snapshot", extensions.Errorf(extensions.KindInvalid, "snapshot %s %s", s.ID, what).
		WithRemedy("choose another snapshot, or remove from_snapshot"))
}
