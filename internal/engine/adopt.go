package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// adopt takes over a live sandbox of the same spec. The generation rises, in
// the ledger and where possible on the object, and fences the former owner
// off. What is inside stays, its secrets included; its end moves to the ttl
// that the new owner asks for.
func (e *Engine) adopt(ctx context.Context, l ledger.Ledger, c *creation, row ledger.Sandbox, notify Notify) (*Sandbox, error) {
	if hash := c.p.hashFor(row.Extension); hash != row.SpecHash {
		return nil, e.notAdoptable(row)
	}
	b, err := e.places.Open(ctx, placeOf(row))
	if err != nil {
		return nil, err
	}
	// What cannot be asked now is not taken from its owner.
	o, err := b.Look(ctx, row.Handle)
	if err != nil {
		return nil, err
	}
	if o.Phase != extensions.PhaseReady && o.Phase != extensions.PhasePaused {
		return nil, extensions.Errorf(extensions.KindConflict, "%w; it is %s there and cannot be adopted", e.holderOf(row), o.Phase).
			WithRemedy("choose another name, or end it: sandboxer sandbox destroy %s", row.ID)
	}
	op, err := e.openOperation(ctx, l, row, ledger.IntentAdopt, ledger.Change{
		Expect: ledger.Expect{States: usable}, NextGeneration: true, Event: ledger.NewNote("sandbox.adopting", nil)}, notify)
	if err != nil {
		return nil, leftAlone(row, err)
	}
	defer op.close()
	if b.Binding.Descriptor.Has(extensions.PowerGenerationSet) {
		if err := b.SetGeneration(ctx, op.row.Handle, op.row.Generation); err != nil {
			ferr := op.apply(ctx, ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: extensions.Clean(err.Error(), 500)}, Event: ledger.NewNote("sandbox.adopt-failed", nil)})
			return nil, errors.Join(err, ferr)
		}
	}
	end, ttl, moved := e.adoptedEnd(ctx, b, op, c.p)
	err = op.apply(ctx, ledger.Change{Patch: ledger.Patch{Request: mustJSON(c.p.req), ExpiresAt: &end, TTL: &ttl},
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Reserve: e.settledEnd(ctx, l, op.row, end),
		Event: ledger.NewNote("sandbox.adopted", map[string]any{"consumer": c.p.req.Consumer, "expires_at": end})})
	if err != nil {
		return nil, err
	}
	s := e.sealed(ctx, l, op.row)
	s.Notices = append(s.Notices, Notice{Summary: "Adopted a running sandbox", Detail: fmt.Sprintf("%s (%s) was taken over; its former owner can no longer change it.", row.ID, row.Name)})
	if len(c.p.req.SecretNames) > 0 {
		s.Notices = append(s.Notices, Notice{Summary: "The adopted sandbox keeps its secrets",
			Detail: fmt.Sprintf("%s has the secrets it was made with, not the ones given now. Replace it to give it new ones.", row.ID)})
	}
	if moved != nil {
		s.Notices = append(s.Notices, Notice{Summary: "The end of the adopted sandbox stays as it was",
			Detail: fmt.Sprintf("%s ends at %s: %s", row.ID, end.UTC().Format(time.RFC3339), moved)})
	}
	return &s, nil
}

func (e *Engine) notAdoptable(row ledger.Sandbox) error {
	err := extensions.Errorf(extensions.KindConflict, "%w; it was made from another specification and cannot be adopted", e.holderOf(row))
	err.ID = row.ID
	return err.WithRemedy("give the request the profile, inputs, env and secret names it was made with, choose another name, or end it: sandboxer sandbox destroy %s", row.ID)
}

// adoptedEnd moves the end to what the new owner's ttl says. Where that
// cannot be, the sandbox is adopted with the end it has.
func (e *Engine) adoptedEnd(ctx context.Context, b *place.Backend, op *operation, p *prepared) (end time.Time, ttl time.Duration, why error) {
	row, want := op.row, time.Duration(p.resolved.Spec.TTL)
	end, err := lifecycle.Retarget(row.CreatedAt, row.ExpiresAt, row.TTL, want, time.Duration(p.resolved.Spec.MaxTTL))
	if err == nil && !end.Equal(row.ExpiresAt) {
		if !end.After(e.now()) {
			err = extensions.Errorf(extensions.KindInvalid, "a ttl of %s would already be over", profile.FormatDuration(want))
		} else if err = op.affordLater(ctx, end, want); err == nil {
			err = b.Extend(ctx, row.Handle, end)
		}
	}
	if err != nil {
		return row.ExpiresAt, row.TTL, err
	}
	return end, want, nil
}
