package tenant

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Replay implements ledger.Ledger: of lives that were led on the client's own
// places, where nobody sends a bill.
func (v *view) Replay(ctx context.Context, b *ledger.Begin, cs ...ledger.Change) (ledger.Sandbox, error) {
	var row ledger.Sandbox
	var err error
	switch {
	case b != nil:
		if err = v.mayBegin(*b); err == nil {
			row = rowOf(*b)
		}
	case len(cs) > 0:
		row, err = v.Get(ctx, cs[0].ID)
	}
	for _, c := range cs {
		err = errors.Join(err, v.mayApply(c))
	}
	if err != nil {
		return ledger.Sandbox{}, err
	}
	if b != nil {
		told := *b
		if err := v.ownPlace(row, told.Quote); err != nil {
			return ledger.Sandbox{}, err
		}
		told.Reserve, told.Metered = noWallet(told.Reserve), false
		told.CreatedAt = notAfter(told.CreatedAt, v.now())
		told.Event = v.marked(ctx, chosen(row, told.Quote), told.Event)
		b = &told
	}
	steps := make([]ledger.Change, len(cs))
	for i, c := range cs {
		if c.Patch.Extension != nil {
			row.Extension = *c.Patch.Extension
		}
		if err := v.ownPlace(row, c.Quote); err != nil {
			return ledger.Sandbox{}, err
		}
		if steps[i], err = v.told("", c); err != nil {
			return ledger.Sandbox{}, err
		}
		if c.Patch.Extension != nil {
			setText(&row.Host, c.Patch.Host)
			setText(&row.HostRef, c.Patch.HostRef)
			steps[i].Event = v.marked(ctx, row, c.Event)
		}
	}
	return v.own(row.ID)(v.base.Replay(ctx, b, steps...))
}

// marked is an event that also says which of the owner's rules forbids the
// place, if one does. What happened there is recorded all the same: it is over,
// and refused it would stay in the client's spool, untold.
func (v *view) marked(ctx context.Context, place ledger.Sandbox, n ledger.Note) ledger.Note {
	var f *ledger.Forbidden
	if !errors.As(v.permit(ctx, place, true), &f) {
		return n
	}
	data := map[string]json.RawMessage{}
	if len(n.Data) > 0 && json.Unmarshal(n.Data, &data) != nil {
		return n // no object: the ledger refuses it
	}
	rule, err := json.Marshal(f.Rule)
	why, err2 := json.Marshal(f.Reason)
	data["forbidden"], data["forbidden_because"] = rule, why
	body, err3 := json.Marshal(data)
	if errors.Join(err, err2, err3) == nil {
		n.Data = body
	}
	return n
}
