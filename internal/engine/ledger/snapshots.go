package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (s *store) BeginSnapshot(ctx context.Context, b BeginSnapshot) (Snapshot, error) {
	if !extensions.ValidSnapshotID(b.ID) {
		return Snapshot{}, failuref(extensions.KindInvalid, "%q is not a snapshot id", b.ID)
	}
	for _, r := range []struct{ name, value string }{{"account", b.Account}, {"key", b.Key}, {"holder", string(b.Holder)}} {
		if err := plain(r.name, r.value); err != nil {
			return Snapshot{}, err
		}
	}
	var row Snapshot
	err := s.write(ctx, func(t *tx) error {
		if _, err := t.sandbox(b.SandboxID); err != nil {
			return err
		}
		if err := t.queue(b.Account); err != nil {
			return err
		}
		subject, done, err := t.replayed(b.Key)
		if err != nil {
			return err
		}
		if done { // without a lock, as in recorded
			rows, err := selectAll(t.ctx, t.store, t.sql, "snapshots", (*Snapshot).fields, "WHERE id = ?", subject)
			row, err = one(rows, err, "snapshot", subject)
			return err
		}
		row, err = t.beginSnapshot(b)
		return err
	})
	return row, err
}

func (t *tx) beginSnapshot(b BeginSnapshot) (Snapshot, error) {
	row := Snapshot{ID: b.ID, Account: b.Account, Name: b.Name, SandboxID: b.SandboxID, State: SnapshotCreating, Fence: 1,
		Extension: b.Extension, Host: b.Host, HostRef: b.HostRef, Request: b.Request, CreatedAt: t.orNow(b.CreatedAt), UpdatedAt: t.now}
	if err := t.insert("ledger.snapshot", "snapshots", row.fields()); err != nil {
		if t.dialect.unique(err) {
			return row, failuref(extensions.KindConflict, "the snapshot id %s is in the ledger already", b.ID)
		}
		return row, err
	}
	intent := Intent{Key: b.Key, Kind: IntentSnapshot, Subject: b.ID, Account: b.Account, State: Dispatched, Holder: b.Holder, Fence: 1, StartedAt: t.now}
	if err := t.insert("ledger.intent.open", "intents", intent.fields()); err != nil {
		return row, t.clash(err, b.Key)
	}
	data := factData{Row: "snapshots", State: string(row.State), Opened: intent.fact(), Note: b.Event.Data}
	return t.recordSnapshot(Snapshot{}, row, b.Event.typed("snapshot.creating"), b.Key, data)
}

func (t *tx) recordSnapshot(before, row Snapshot, kind, key string, data factData) (Snapshot, error) {
	var err error
	if data.Set, err = changed(before.fields(), row.fields()); err != nil {
		return before, failure(extensions.KindInvalid, row.ID, err)
	}
	if err := t.append(fact{account: row.Account, kind: kind, subject: row.ID, operation: key, data: data}); err != nil {
		return before, err
	}
	return t.snapshot(row.ID)
}

func (t *tx) snapshot(id string) (Snapshot, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "snapshots", (*Snapshot).fields, "WHERE id = ?"+t.dialect.forUpdate, id)
	return one(rows, err, "snapshot", id)
}

func (s *store) ApplySnapshot(ctx context.Context, c SnapshotChange) (Snapshot, error) {
	if err := plain("key of the change", c.Key); err != nil {
		return Snapshot{}, err
	}
	var row Snapshot
	err := s.write(ctx, func(t *tx) (err error) {
		if row, err = t.snapshot(c.ID); err != nil {
			return err
		}
		subject, done, err := t.replayed(c.Key)
		if err != nil {
			return err
		}
		if done && subject != c.ID {
			return failure(extensions.KindConflict, c.ID, fmt.Errorf("the operation key %q was used for something else", c.Key))
		}
		if done {
			return nil
		}
		row, err = t.applySnapshot(row, c)
		return err
	})
	return row, err
}

func (t *tx) applySnapshot(before Snapshot, c SnapshotChange) (Snapshot, error) {
	open, err := t.openIntent(c.ID)
	if err != nil {
		return before, err
	}
	if why := c.mismatch(before, open); why != "" {
		return before, failure(extensions.KindConflict, c.ID, &Stale{Why: why}).WithRemedy("look again and decide anew")
	}
	row := before
	c.Patch.apply(&row)
	row.UpdatedAt = t.now
	if c.To != "" {
		row.State = c.To
	}
	data := factData{Row: "snapshots", From: string(before.State), State: string(row.State), Note: c.Event.Data}
	if data.Finished, data.Opened, err = t.intents(subject{id: c.ID, account: row.Account}, c.Key, &row.Fence, open, c.Finish, c.Intent); err != nil {
		return before, err
	}
	if open, err = t.openIntent(c.ID); err != nil {
		return before, err
	}
	if unsettled := row.State == SnapshotCreating || row.State == SnapshotDeleting; unsettled && open == nil || row.State == SnapshotDeleted && open != nil {
		return before, failure(extensions.KindInvalid, c.ID, fmt.Errorf("a snapshot that is %s with its intent open: %t", row.State, open != nil))
	}
	err = t.update("ledger.snapshot", "snapshots", row.fields(), "id = ? AND state = ? AND fence = ?", row.ID, string(before.State), before.Fence)
	if err != nil {
		return before, err
	}
	kind := "snapshot.changed"
	if c.To != "" {
		kind = "snapshot." + string(c.To)
	}
	return t.recordSnapshot(before, row, c.Event.typed(kind), c.Key, data)
}

func (c SnapshotChange) mismatch(row Snapshot, open *Intent) string {
	switch e := c.Expect; {
	case len(e.States) > 0 && !slices.Contains(e.States, row.State):
		return fmt.Sprintf("it is %s", row.State)
	case e.Fence != 0 && e.Fence != row.Fence:
		return fmt.Sprintf("a newer operation has begun (fence %d, not %d)", row.Fence, e.Fence)
	case e.Holder != "" && (open == nil || open.Holder != e.Holder):
		return "its operation is in other hands"
	case c.To != "" && c.To != row.State && !slices.Contains(snapshotEdges[row.State], c.To):
		return fmt.Sprintf("%s cannot become %s", row.State, c.To)
	}
	return ""
}
