package sqlstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (s *store) BeginSnapshot(ctx context.Context, b ledger.BeginSnapshot) (ledger.Snapshot, error) {
	if !extensions.ValidSnapshotID(b.ID) {
		return ledger.Snapshot{}, fault.Errorf(extensions.KindInvalid, "%q is not a snapshot id", b.ID)
	}
	for _, r := range []struct{ name, value string }{{"account", b.Account}, {"key", b.Key}, {"holder", string(b.Holder)}} {
		if err := plain(r.name, r.value); err != nil {
			return ledger.Snapshot{}, err
		}
	}
	var row ledger.Snapshot
	err := s.write(ctx, func(t *tx) error {
		of, err := t.sandbox(b.SandboxID)
		if err != nil {
			return err
		}
		if err := t.queue(b.Account); err != nil {
			return err
		}
		subject, done, err := t.replayed(b.Key)
		if err != nil {
			return err
		}
		if done { // without a lock, as recorded reads
			rows, err := selectAll(t.ctx, t.store, t.sql, "snapshots", snapshotRow, "WHERE id = ?", subject)
			row, err = one(rows, err, "snapshot", subject)
			return err
		}
		row, err = t.beginSnapshot(b, of.Payer)
		return err
	})
	return row, err
}

func (t *tx) beginSnapshot(b ledger.BeginSnapshot, payer string) (ledger.Snapshot, error) {
	row := ledger.Snapshot{ID: b.ID, Account: b.Account, Name: b.Name, SandboxID: b.SandboxID, State: ledger.SnapshotCreating, Fence: 1,
		Extension: b.Extension, Host: b.Host, HostRef: b.HostRef, Identity: b.Identity, Arch: b.Arch, Payer: payer,
		Retention: b.Retention, Request: b.Request,
		CreatedAt: cmp.Or(b.CreatedAt, t.now), UpdatedAt: t.now}
	if err := t.insert("ledger.snapshot", "snapshots", snapshotRow(&row)); err != nil {
		if t.dialect.unique(err) {
			return row, fault.Errorf(extensions.KindConflict, "the snapshot id %s is in the ledger already", b.ID)
		}
		return row, err
	}
	intent := ledger.Intent{Key: b.Key, Kind: ledger.IntentSnapshot, Subject: b.ID, Account: b.Account, State: ledger.Dispatched,
		Holder: b.Holder, Fence: 1, StartedAt: t.now}
	if err := t.insert("ledger.intent.open", "intents", intentRow(&intent)); err != nil {
		return row, t.clash(err, b.Key)
	}
	data := chain.Data{Row: "snapshots", State: string(row.State), Opened: intentTold(intent), Note: b.Event.Data}
	return t.recordSnapshot(ledger.Snapshot{}, row, b.Event.Typed("snapshot.creating"), b.Key, data)
}

func (t *tx) recordSnapshot(before, row ledger.Snapshot, kind, key string, data chain.Data) (ledger.Snapshot, error) {
	var err error
	if data.Set, err = changed(snapshotRow(&before), snapshotRow(&row)); err != nil {
		return before, fault.New(extensions.KindInvalid, row.ID, err)
	}
	if err := t.append(fact{account: row.Account, kind: kind, subject: row.ID, operation: key, data: data}); err != nil {
		return before, err
	}
	return t.snapshot(row.ID)
}

func (t *tx) snapshot(id string) (ledger.Snapshot, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "snapshots", snapshotRow, "WHERE id = ?"+t.dialect.forUpdate, id)
	return one(rows, err, "snapshot", id)
}

func (s *store) ApplySnapshot(ctx context.Context, c ledger.SnapshotChange) (ledger.Snapshot, error) {
	if err := plain("key of the change", c.Key); err != nil {
		return ledger.Snapshot{}, err
	}
	var row ledger.Snapshot
	err := s.write(ctx, func(t *tx) (err error) {
		if row, err = t.snapshot(c.ID); err != nil {
			return err
		}
		subject, done, err := t.replayed(c.Key)
		if err != nil {
			return err
		}
		if done && subject != c.ID {
			return fault.New(extensions.KindConflict, c.ID, fmt.Errorf("the operation key %q was used for something else", c.Key))
		}
		if done {
			return nil
		}
		if c.Meter != (bank.MeterOps{}) {
			if err := t.queue(row.Account); err != nil {
				return err
			}
		}
		row, err = t.applySnapshot(row, c)
		return err
	})
	return row, err
}

func (t *tx) applySnapshot(before ledger.Snapshot, c ledger.SnapshotChange) (ledger.Snapshot, error) {
	open, err := t.openIntent(c.ID)
	if err != nil {
		return before, err
	}
	if why := c.Mismatch(before, open); why != "" {
		return before, fault.New(extensions.KindConflict, c.ID, &ledger.Stale{Why: why}).WithRemedy("read its current state and try again")
	}
	row := before
	c.Patch.Apply(&row)
	row.UpdatedAt = t.now
	if c.To != "" {
		row.State = c.To
	}
	data := chain.Data{Row: "snapshots", From: string(before.State), State: string(row.State), Note: c.Event.Data}
	if data.Finished, data.Opened, err = t.intents(subject{id: c.ID, account: row.Account}, c.Key, &row.Fence, open, c.Finish,
		c.Intent); err != nil {
		return before, err
	}
	if data.Meter, data.Funds, err = t.keeping(row, c); err != nil {
		return before, err
	}
	if open, err = t.openIntent(c.ID); err != nil {
		return before, err
	}
	if unsettled := row.State == ledger.SnapshotCreating || row.State == ledger.SnapshotDeleting; unsettled && open == nil ||
		row.State == ledger.SnapshotDeleted && open != nil {
		return before, fault.New(extensions.KindInvalid, c.ID,
			fmt.Errorf("a snapshot that is %s with its intent open: %t", row.State, open != nil))
	}
	counts, err := t.openMeter(extensions.ID(c.ID))
	if err != nil {
		return before, err
	}
	if row.State == ledger.SnapshotReady && counts == nil || row.State == ledger.SnapshotDeleted && counts != nil {
		return before, fault.New(extensions.KindInvalid, c.ID,
			fmt.Errorf("a snapshot that is %s with its meter open: %t", row.State, counts != nil))
	}
	err = t.update("ledger.snapshot", "snapshots", snapshotRow(&row), "id = ? AND state = ? AND fence = ?", row.ID, string(before.State),
		before.Fence)
	if err != nil {
		return before, err
	}
	kind := "snapshot.changed"
	if c.To != "" {
		kind = "snapshot." + string(c.To)
	}
	return t.recordSnapshot(before, row, c.Event.Typed(kind), c.Key, data)
}

// keeping applies a change to the meter of a snapshot and then, with its charges, to the money.
func (t *tx) keeping(row ledger.Snapshot, c ledger.SnapshotChange) (*chain.MeterFact, []bank.Transfer, error) {
	switch {
	case c.Meter.Open != nil:
		of, err := t.ofSnapshot(row)
		if err != nil {
			return nil, nil, err
		}
		m := c.Meter.Open.Kept(row.ID, row.SandboxID, of, t.now)
		if err := t.insert("ledger.meter.open", "meters", meterRow(&m)); err != nil {
			return nil, nil, err
		}
		return &chain.MeterFact{ID: m.ID, OpenedAt: chain.Instant(m.OpenedAt), Mode: m.Last().Mode}, nil, t.insertSegment(m, m.Last())
	case c.Meter.Close != nil:
		m, err := t.openMeter(extensions.ID(row.ID))
		if err != nil || m == nil {
			return nil, nil, err
		}
		books, err := t.openBooks(row.Account, row.ID)
		if err != nil {
			return nil, nil, err
		}
		fact, charges, err := t.closeMeter(row.Payer, *m, *c.Meter.Close, books.Held())
		if err != nil {
			return nil, nil, err
		}
		if _, err := books.Change(bank.Turn{Key: c.Key, Payer: row.Payer, Ends: true, Charges: charges}); err != nil {
			return nil, nil, err
		}
		funds, err := t.post(books)
		return fact, funds, err
	}
	return nil, nil, nil
}

// ofSnapshot returns whom a snapshot is kept for: whoever its sandbox ran for. It takes no lock, as what it reads of
// the sandbox does not change.
func (t *tx) ofSnapshot(row ledger.Snapshot) (bank.Attribution, error) {
	rows, err := selectAll(t.ctx, t.store, t.sql, "sandboxes", sandboxRow, "WHERE id = ?", string(row.SandboxID))
	of, err := one(rows, err, "sandbox", string(row.SandboxID))
	whom := of.Attribution()
	whom.Extension, whom.Host = row.Extension, row.Host
	return whom, err
}
