package sqlstore

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const thisLease = "sandbox_id = ? AND id = ?"

func (s *store) Leases(ctx context.Context, id extensions.ID) ([]ledger.Lease, error) {
	return readAll(ctx, s, "leases", leaseRow, "WHERE sandbox_id = ? ORDER BY created_at, id", string(id))
}

func (t *tx) leases(id extensions.ID) ([]ledger.Lease, error) {
	return selectAll(t.ctx, t.store, t.sql, "leases", leaseRow, "WHERE sandbox_id = ? ORDER BY created_at, id", string(id))
}

// lease writes a lease on a sandbox, a new one or one with another end.
func (t *tx) lease(id extensions.ID, s *ledger.Lease) error {
	if s == nil {
		return nil
	}
	all, err := t.leases(id)
	if err != nil {
		return err
	}
	s.SandboxID = id
	for _, had := range all {
		if had.ID == s.ID {
			return t.update("ledger.lease", "leases", leaseRow(s), thisLease, string(id), s.ID)
		}
	}
	return t.insert("ledger.lease", "leases", leaseRow(s))
}

// endLeases drops the leases that a change releases, and all of them at the end of their sandbox. It returns how
// many still count.
func (t *tx) endLeases(row ledger.Sandbox, release []string) (counting int, err error) {
	all, err := t.leases(row.ID)
	if err != nil {
		return 0, err
	}
	gone := map[string]bool{}
	for _, id := range release {
		gone[id] = true
	}
	for _, s := range all {
		switch {
		case gone[s.ID] || lifecycle.Terminal(row.State):
			if _, err := t.exec("ledger.lease", "DELETE FROM leases WHERE "+thisLease, string(row.ID), s.ID); err != nil {
				return 0, err
			}
			t.removed("leases", map[string]any{"sandbox_id": string(row.ID), "id": s.ID})
		case s.Counts(t.now):
			counting++
		}
	}
	return counting, nil
}
