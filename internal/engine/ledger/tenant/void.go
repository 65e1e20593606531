package tenant

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
)

// proved decides about the end of a life that was never metered, of the sandbox
// or of the one that is made anew. What is set
// aside is given back where the owner can tell that nothing was used; else it
// is paid for from its begin by the owner's clock:
//
//   - no place was ever recorded, so none was asked: given back;
//   - no handle was recorded, and it ends within the Window: given back;
//   - the place has ended by itself whatever there was: given back, and kept
//     as a memo of what it may have cost;
//   - anything else: paid for until now, or until the place's own end.
func (v *view) proved(ctx context.Context, row ledger.Sandbox, c ledger.Change, price Price, present life) ([]ledger.Change, error) {
	over := c.To == lifecycle.Destroyed || recreates(c)
	if !over || present.ran || c.Meter.Open != nil {
		c.Unresolved = false
		return []ledger.Change{c}, nil
	}
	held, err := v.base.Held(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	now := v.now()
	ended := price.Native && !row.ExpiresAt.IsZero() && now.After(row.ExpiresAt.Add(v.Grace))
	none := !present.made && (c.Patch.Handle == nil || c.Patch.Handle.IsZero())
	switch {
	case len(held) == 0, row.Extension == "", none && now.Sub(present.since) <= v.Window:
		c.Unresolved = false
		return []ledger.Change{c}, nil
	case ended && none:
		c.Unresolved = !c.NextGeneration // what the new life needs replaces what is set aside
		return []ledger.Change{c}, nil
	}
	if ended {
		now = row.ExpiresAt
	}
	return v.charged(c, price, present.since, now)
}

// charged meters the whole time in the transaction that ends it.
func (v *view) charged(c ledger.Change, price Price, since, until time.Time) ([]ledger.Change, error) {
	first := ledger.Change{ID: c.ID, Key: c.Key + "/unproved", Expect: c.Expect,
		Meter: ledger.MeterOps{Open: &ledger.MeterOpen{At: since, Source: sourceOwner}}, Event: ledger.Note{Type: "sandbox.unproved"}}
	if err := v.rate(&first.Meter, price); err != nil {
		return nil, err
	}
	c.Expect.UpdatedAt, c.Unresolved = time.Time{}, false
	c.Meter.Close = &ledger.MeterClose{At: until, Source: sourceOwner, Estimated: true}
	return []ledger.Change{first, c}, nil
}
