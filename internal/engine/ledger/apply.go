package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (s *store) Apply(ctx context.Context, c Change) (Sandbox, error) {
	if err := plain("key of the change", c.Key); err != nil {
		return Sandbox{}, err
	}
	var row Sandbox
	err := s.write(ctx, func(t *tx) (err error) {
		if row, err = t.sandbox(c.ID); err != nil {
			return err
		}
		subject, done, err := t.replayed(c.Key)
		if err != nil {
			return err
		}
		if done && subject != string(c.ID) {
			return failure(extensions.KindConflict, string(c.ID), fmt.Errorf("the operation key %q was used for something else", c.Key))
		}
		if done {
			return nil
		}
		if err := t.queue(row.Account); err != nil {
			return err
		}
		row, err = t.apply(row, c)
		return err
	})
	return row, err
}

func (t *tx) apply(before Sandbox, c Change) (Sandbox, error) {
	open, err := t.openIntent(string(c.ID))
	if err != nil {
		return before, err
	}
	why := c.Expect.mismatch(before, open)
	if why == "" && c.Intent != nil && lifecycle.Terminal(before.State) {
		why = fmt.Sprintf("it is %s", before.State)
	}
	if why != "" {
		e := failure(extensions.KindConflict, string(c.ID), &Stale{Current: before, Why: why})
		return before, e.WithRemedy("look again and decide anew")
	}
	if err := t.room(before, c.Room); err != nil {
		return before, err
	}
	if err := t.ceilings(before, c.Ceilings, c.Reserve, c.Intent != nil && c.Intent.Kind == IntentRecreate); err != nil {
		return before, err
	}
	data := factData{Row: "sandboxes", Note: c.Event.Data}
	row, err := t.moved(before, c)
	if err != nil {
		return before, err
	}
	if data.Finished, data.Opened, err = t.intents(subject{string(c.ID), row.Account, row.Generation}, c.Key, &row.Fence, open, c.Finish, c.Intent); err != nil {
		return before, err
	}
	if data.Meter, err = t.meter(row, c.Meter); err != nil {
		return before, err
	}
	if data.Funds, err = t.funds(&row, c, data.Meter); err != nil {
		return before, err
	}
	if err := t.check(row); err != nil {
		return before, err
	}
	return t.record(before, row, c, data)
}

// funds settles what is set aside for a meter that ends, and sets aside anew.
// What becomes free in between pays first what is owed.
func (t *tx) funds(row *Sandbox, c Change, m *meterFact) ([]Transfer, error) {
	out, err := t.settled(row, c, m)
	if err != nil {
		return nil, err
	}
	paid, err := t.freed(*row, c.Key, out)
	if err != nil || c.Unresolved {
		return append(out, paid...), err
	}
	reserved, err := t.reserve(row, c.Key, c.Reserve)
	if err != nil {
		return nil, err
	}
	rest, err := t.freed(*row, c.Key+"/rest", reserved)
	return slices.Concat(out, paid, reserved, rest), err
}

// settled is what ends with the change. Who pays for what follows is undecided.
func (t *tx) settled(row *Sandbox, c Change, m *meterFact) (out []Transfer, err error) {
	switch {
	case c.Unresolved:
		out, err = t.expose(*row, c.Key)
	case m != nil && m.Charged != "":
		out, err = t.resolve(*row, c.Key, m.Charges)
	case lifecycle.Terminal(row.State):
		out, err = t.resolve(*row, c.Key, nil)
	default:
		return nil, nil
	}
	row.Payer = ""
	return out, err
}

// record writes the row and its event.
func (t *tx) record(before, row Sandbox, c Change, data factData) (Sandbox, error) {
	err := t.update("ledger.sandbox", "sandboxes", row.fields(), "id = ? AND state = ? AND generation = ? AND fence = ?",
		string(row.ID), string(before.State), before.Generation, before.Fence)
	if t.dialect.unique(err) { // the name went to someone between read and write
		if taken := t.nameFree(row); taken != nil {
			return before, taken
		}
	}
	if err != nil {
		return before, err
	}
	if data.Set, err = changed(before.fields(), row.fields()); err != nil {
		return before, failure(extensions.KindInvalid, string(row.ID), err)
	}
	data.From, data.State, data.Generation = string(before.State), string(row.State), row.Generation
	err = t.append(fact{account: row.Account, kind: c.Event.typed(c.kind(row)), subject: string(row.ID), operation: c.Key, data: data})
	if err != nil {
		return before, err
	}
	return t.sandbox(row.ID)
}

func (c Change) kind(row Sandbox) string {
	switch {
	case c.To != "":
		return "sandbox." + string(row.State)
	case c.Intent != nil:
		return "sandbox." + string(c.Intent.Kind)
	case c.Finish != nil:
		return "sandbox.finished"
	}
	return "sandbox.changed"
}

// mismatch says in which way the row is not as expected; "" = it is.
func (e Expect) mismatch(row Sandbox, open *Intent) string {
	switch {
	case len(e.States) > 0 && !slices.Contains(e.States, row.State):
		return fmt.Sprintf("it is %s", row.State)
	case e.Generation != 0 && e.Generation != row.Generation:
		return fmt.Sprintf("its generation is %d, not %d: it was taken over or recreated", row.Generation, e.Generation)
	case e.Fence != 0 && e.Fence != row.Fence:
		return fmt.Sprintf("a newer operation has begun (fence %d, not %d)", row.Fence, e.Fence)
	case e.Holder != "" && (open == nil || open.Holder != e.Holder):
		return "its operation is in other hands"
	case e.NoIntent && open != nil:
		return fmt.Sprintf("%s is under way", open.Kind)
	}
	return ""
}

// moved applies state, generation, patch and the claim to the name.
func (t *tx) moved(row Sandbox, c Change) (Sandbox, error) {
	from := row.State
	c.Patch.apply(&row)
	row.UpdatedAt = t.now
	if c.NextGeneration {
		row.Generation++
	}
	digest, err := t.quote(c.Quote)
	if err != nil {
		return row, err
	}
	if digest != "" {
		row.QuoteDigest = digest
	}
	if c.To == "" || c.To == from {
		return row, nil
	}
	if !lifecycle.Can(from, c.To) {
		e := failure(extensions.KindConflict, string(row.ID), &Stale{Current: row, Why: fmt.Sprintf("%s cannot become %s", from, c.To)})
		return row, e
	}
	row.State = c.To
	switch {
	case lifecycle.FreesName(c.To):
		row.ClaimsName = false
	case c.To == lifecycle.Provisioning && from != lifecycle.Requested && !row.ClaimsName:
		row.ClaimsName = true
		return row, t.nameFree(row)
	}
	return row, nil
}

// check holds what must be true after any change: no state without someone
// responsible, no usable sandbox unmetered, nothing running after the end.
func (t *tx) check(row Sandbox) error {
	if err := row.indexed(); err != nil {
		return err
	}
	open, err := t.openIntent(string(row.ID))
	if err != nil {
		return err
	}
	meter, err := t.openMeter(row.ID)
	if err != nil {
		return err
	}
	var wrong string
	switch {
	case lifecycle.Unsettled(row.State) && open == nil:
		wrong = "needs an open intent: nobody would recover it"
	case lifecycle.Usable(row.State) && meter == nil:
		wrong = "needs an open meter"
	case lifecycle.Terminal(row.State) && meter != nil:
		wrong = "still has an open meter"
	case lifecycle.Terminal(row.State) && open != nil:
		wrong = "still has an open intent"
	default:
		return nil
	}
	return failure(extensions.KindInvalid, string(row.ID), fmt.Errorf("a sandbox that is %s %s", row.State, wrong))
}
