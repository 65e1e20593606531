package tenant

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// life is what the ledger tells of a sandbox's present life: the one that its
// create or its latest recreate began. Who adopts a sandbox goes on with it.
type life struct {
	since time.Time // when it began, by the owner's clock
	open  *ledger.Meter
	ran   bool // it is or was metered
	made  bool // what it made is recorded; the row may still have a former life's handle
}

// lifeOf looks it up.
func (v *view) lifeOf(ctx context.Context, row ledger.Sandbox) (life, error) {
	l := life{since: row.CreatedAt}
	meters, err := v.base.Meters(ctx, row.ID)
	if err != nil {
		return l, err
	}
	if n := len(meters); n > 0 {
		last := &meters[n-1]
		if last.Open() {
			l.open = last
		}
		l.ran = last.Open() || last.Generation == row.Generation
	}
	l.made = !row.Handle.IsZero() && (l.ran || row.Generation == 1 || !row.SeenAliveAt.IsZero())
	if row.Generation > 1 {
		l.since, err = v.begun(ctx, row)
	}
	return l, err
}

// begun is when a later life began: with its recreate while that is open, else
// when the first was set aside of what is set aside for it.
func (v *view) begun(ctx context.Context, row ledger.Sandbox) (time.Time, error) {
	open, err := v.base.OpenIntents(ctx, ledger.IntentFilter{Subject: string(row.ID)})
	if err != nil {
		return row.CreatedAt, err
	}
	for _, in := range open {
		if in.Kind == ledger.IntentRecreate || in.Kind == ledger.IntentAdopt {
			return in.StartedAt, nil
		}
	}
	held, err := v.base.Held(ctx, row.ID)
	if err != nil || len(held) == 0 || held[0].At().Before(row.CreatedAt) {
		return row.CreatedAt, err
	}
	return held[0].At(), nil
}

// seen keeps SeenAliveAt such that it tells whose the row's handle is: a new
// life has not been seen, and one whose handle is told has.
func (v *view) seen(c *ledger.Change) {
	p, now := &c.Patch, v.now()
	switch {
	case recreates(*c):
		p.SeenAliveAt = &time.Time{}
	case p.Handle != nil && !p.Handle.IsZero():
		p.SeenAliveAt = &now
	case p.SeenAliveAt != nil && p.SeenAliveAt.IsZero():
		p.SeenAliveAt = nil
	}
}

// recreates reports a change that begins a new life.
func recreates(c ledger.Change) bool {
	return c.NextGeneration && c.Intent != nil && c.Intent.Kind == ledger.IntentRecreate
}
