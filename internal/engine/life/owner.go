package life

import (
	"context"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// since reports that a sandbox has another generation than its receipt, by an adoption or because it was made again.
func since(row ledger.Sandbox, rec plan.Receipt) bool {
	return rec.Generation > 0 && row.Generation > rec.Generation
}

// notOurs returns KindConflict if another owner adopted a sandbox after its receipt was written. Only its owner makes one
// again, and may die before it can write the new generation down: a receipt of the former one stays good.
func (m *Manager) notOurs(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, rec plan.Receipt) error {
	if !since(row, rec) {
		return nil
	}
	all, err := l.Intents(ctx, string(row.ID))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(in ledger.Intent) bool {
		return in.Kind == ledger.IntentAdopt && in.Generation > rec.Generation && in.State != ledger.Failed
	}) {
		return m.fenced(row)
	}
	return nil
}

func (m *Manager) fenced(row ledger.Sandbox) error {
	err := extensions.Errorf(extensions.KindConflict, "another owner took over sandbox %s (%s)", row.ID, row.Name)
	err.ID = row.ID
	return err.WithRemedy("do nothing: the run that adopted it owns it")
}

// getRemaking shows a sandbox that another run is making again, or was until it died: then the next change ends it.
func (m *Manager) getRemaking(ctx context.Context, l *ledger.Ledger, s Sandbox) (Sandbox, error) {
	open, err := l.OpenIntents(ctx, ledger.IntentFilter{Subject: string(s.ID)})
	if err != nil {
		return s, err
	}
	for _, in := range open {
		if alive, err := l.HolderAlive(ctx, in.Holder); err != nil || alive {
			return s, err
		}
	}
	s.State, s.Reason = string(lifecycle.Failed), "the run that was re-creating it died"
	return s, nil
}
