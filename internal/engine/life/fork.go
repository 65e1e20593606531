package life

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// source returns the sandbox that a request forks; nil if it forks none.
func (m *Manager) source(ctx context.Context, asked *plan.Asked) (*ledger.Sandbox, error) {
	id := extensions.ID(asked.Request.FromSandbox)
	if id == "" {
		return nil, nil
	}
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	row, err := l.Get(ctx, id)
	if absent(err) {
		return nil, extensions.AtField("from_sandbox",
			extensions.Errorf(extensions.KindInvalid, "sandbox %s cannot be forked: the ledger %s does not know it", id, l.URL()).
				WithRemedy("check the ID and the provider's ledger, state_dir and account"))
	}
	if err != nil {
		return nil, err
	}
	return &row, asked.CheckSource(row, m.account, m.book.Now())
}

// forkable asks the place whether the source of a fork can be forked now, before anything is recorded.
func (m *Manager) forkable(ctx context.Context, d *plan.Decision) error {
	source := d.Evidence.Source
	if source == nil {
		return nil
	}
	b, err := m.places.Open(ctx, placeOf(*source))
	if err == nil {
		err = b.CanFork(ctx, source.Handle)
	}
	if absent(err) {
		err = extensions.Errorf(extensions.KindInvalid, "sandbox %s cannot be forked: it is no longer there: %w", source.ID, err).
			WithRemedy("choose a live sandbox, or remove from_sandbox")
	}
	return extensions.AtField("from_sandbox", err)
}
