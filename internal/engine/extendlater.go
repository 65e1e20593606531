package engine

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ownPlace reports that nobody sends a bill for what runs at a binding.
func (e *Engine) ownPlace(binding string) bool {
	b, err := e.catalog.Named(binding)
	return err == nil && b.Capabilities.PricingModel == extensions.PricingSelfHosted
}

// extendOutside moves the end of a sandbox on a place of the user's own while
// the ledger, which down says cannot be reached, is the only one that knows
// more than the receipt. It only ever moves it away: whether somebody else has
// done so is not known here. The next run that reaches the ledger records it.
func (e *Engine) extendOutside(ctx context.Context, rec Receipt, req Request, ttl, limit time.Duration, down error, notify Notify) (Sandbox, error) {
	row := rowOf(rec)
	if lifecycle.Overdue(e.now(), row.ExpiresAt) {
		return Sandbox{}, down
	}
	if err := lifecycle.Within(ttl, limit); err != nil {
		return Sandbox{}, err
	}
	end, err := lifecycle.ExpiresAt(row.CreatedAt, ttl)
	if err != nil {
		return Sandbox{}, err
	}
	if !end.After(row.ExpiresAt) {
		return Sandbox{}, down
	}
	b, err := e.places.Open(ctx, placeOf(row))
	if err != nil {
		return Sandbox{}, err
	}
	o, err := b.Look(ctx, row.Handle)
	if err != nil {
		return Sandbox{}, err
	}
	if rec.Generation > 0 && o.Generation > rec.Generation {
		return Sandbox{}, e.fenced(row)
	}
	release, err := e.turns.take(ctx, string(row.ID))
	if err != nil {
		return Sandbox{}, place.Classify("extend", row.ID, err)
	}
	defer release()
	if _, err := e.carryEnd(ctx, b, row, end); err != nil {
		return Sandbox{}, err
	}
	u := unsettled{Ledger: e.LedgerURL(), LedgerID: rec.Ledger, ID: row.ID, Generation: row.Generation, TTL: ttl, Before: row.ExpiresAt, ExpiresAt: end, Request: mustJSON(req)}
	if err := e.noteUnsettled(u); err != nil {
		return Sandbox{}, err
	}
	notify.tell("Extended, but not in the ledger yet", "Sandbox %s ends at %s. The next run that reaches the ledger records it: %s", row.ID, end.UTC().Format(time.RFC3339), down)
	row.ExpiresAt, row.TTL = end, ttl
	s := e.view(row)
	s.Receipt = rec
	s.Receipt.ExpiresAt = end
	s.Request = req
	return s, nil
}

// settleExtension records a new end that was given without the ledger. A later
// one that was given elsewhere meanwhile is kept, and told to the place.
func (e *Engine) settleExtension(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, u unsettled, notify Notify) error {
	if !lifecycle.Usable(row.State) {
		return nil
	}
	op, err := e.openOperation(ctx, l, row, ledger.IntentExtend,
		ledger.Change{Expect: ledger.Expect{States: usable}, Event: note("sandbox.extending", map[string]any{"why": "extended before, noted at " + u.At.UTC().Format(time.RFC3339)})}, notify)
	if err != nil {
		return stale(err)
	}
	defer op.close()
	patch := ledger.Patch{Request: u.Request, TTL: &u.TTL, ExpiresAt: &u.ExpiresAt}
	moved := !op.row.ExpiresAt.Equal(u.Before) && op.row.ExpiresAt.After(u.ExpiresAt)
	if moved {
		patch.ExpiresAt = nil
		if err := e.realign(ctx, op); err != nil {
			notify.tell("Left for later", "%s could not be told its end at %s: %s", row.ID, row.ExpiresAt.UTC().Format(time.RFC3339), err.Error())
		}
	}
	done := ledger.Change{Patch: patch, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Event: note("sandbox.extended", map[string]any{"expires_at": u.ExpiresAt, "kept": moved})}
	if _, err := e.reserveLater(ctx, l, op.row, u.ExpiresAt, &done); err != nil {
		return err
	}
	err = op.apply(ctx, done)
	if short(err) { // it has happened already: what it costs is booked at its end
		done.Reserve, done.Ceilings = nil, nil
		err = op.apply(ctx, done)
	}
	return err
}
