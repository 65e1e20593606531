package sqlstore

import (
	"context"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (s *store) Apply(ctx context.Context, c ledger.Change) (ledger.Sandbox, error) {
	if err := plain("key of the change", c.Key); err != nil {
		return ledger.Sandbox{}, err
	}
	var row ledger.Sandbox
	err := s.write(ctx, func(t *tx) (err error) {
		if row, err = t.sandbox(c.ID); err != nil {
			return err
		}
		subject, done, err := t.replayed(c.Key)
		if err != nil {
			return err
		}
		if done && subject != string(c.ID) {
			return fault.New(extensions.KindConflict, string(c.ID), fmt.Errorf("the operation key %q was used for something else", c.Key))
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

func (t *tx) apply(before ledger.Sandbox, c ledger.Change) (ledger.Sandbox, error) {
	open, err := t.openIntent(string(c.ID))
	if err != nil {
		return before, err
	}
	why := c.Expect.Mismatch(before, open)
	if why == "" && c.Intent != nil && lifecycle.Terminal(before.State) {
		why = fmt.Sprintf("it is %s", before.State)
	}
	if why != "" {
		e := fault.New(extensions.KindConflict, string(c.ID), &ledger.Stale{Current: before, Why: why})
		return before, e.WithRemedy("read its current state and try again")
	}
	if err := t.room(before, c.Room); err != nil {
		return before, err
	}
	if err := t.ceilings(before, c.Ceilings, c.Reserve, c.Intent != nil && c.Intent.Kind == ledger.IntentRecreate); err != nil {
		return before, err
	}
	data := chain.Data{Row: "sandboxes", Note: c.Event.Data}
	row, err := t.moved(before, c)
	if err != nil {
		return before, err
	}
	if data.Finished, data.Opened, err = t.intents(subject{string(c.ID), row.Account, row.Generation}, c.Key, &row.Fence, open, c.Finish,
		c.Intent); err != nil {
		return before, err
	}
	if data.Meter, data.Funds, err = t.settle(&row, c); err != nil {
		return before, err
	}
	if err := t.applyLeases(row, c); err != nil {
		return before, err
	}
	if err := t.check(row); err != nil {
		return before, err
	}
	return t.record(before, row, c, data)
}

// applyLeases applies the changes of leases.
func (t *tx) applyLeases(row ledger.Sandbox, c ledger.Change) error {
	if err := t.lease(row.ID, c.Lease); err != nil {
		return err
	}
	counting, err := t.endLeases(row, c.Release)
	if err == nil && (c.Expect.Unleased && counting > 0 || c.Expect.Leased && counting == 0) {
		e := fault.New(extensions.KindConflict, string(row.ID), &ledger.Stale{Current: row,
			Why: fmt.Sprintf("%d others hold it", counting)})
		err = e.WithRemedy("read its current state and try again")
	}
	return err
}

// record writes the row and its event.
func (t *tx) record(before, row ledger.Sandbox, c ledger.Change, data chain.Data) (ledger.Sandbox, error) {
	err := t.update("ledger.sandbox", "sandboxes", sandboxRow(&row), "id = ? AND state = ? AND generation = ? AND fence = ?",
		string(row.ID), string(before.State), before.Generation, before.Fence)
	if t.dialect.unique(err) { // another sandbox took the name between read and write
		if taken := t.nameFree(row); taken != nil {
			return before, taken
		}
	}
	if err != nil {
		return before, err
	}
	if data.Set, err = changed(sandboxRow(&before), sandboxRow(&row)); err != nil {
		return before, fault.New(extensions.KindInvalid, string(row.ID), err)
	}
	data.From, data.State, data.Generation = string(before.State), string(row.State), row.Generation
	err = t.append(fact{account: row.Account, kind: c.Event.Typed(c.Kind(row)), subject: string(row.ID), operation: c.Key, data: data})
	if err != nil {
		return before, err
	}
	return t.sandbox(row.ID)
}

// moved applies state, generation, patch and the claim to the name.
func (t *tx) moved(row ledger.Sandbox, c ledger.Change) (ledger.Sandbox, error) {
	from := row.State
	c.Patch.Apply(&row)
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
		e := fault.New(extensions.KindConflict, string(row.ID), &ledger.Stale{Current: row, Why: fmt.Sprintf("%s cannot become %s", from, c.To)})
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

// check enforces what must hold after any change: every unsettled state has an operation, every usable
// sandbox is metered, and nothing runs after its end.
func (t *tx) check(row ledger.Sandbox) error {
	if err := indexed(row); err != nil {
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
		wrong = "needs an open intent: nothing would recover it"
	case lifecycle.Usable(row.State) && meter == nil:
		wrong = "needs an open meter"
	case lifecycle.Terminal(row.State) && meter != nil:
		wrong = "still has an open meter"
	case lifecycle.Terminal(row.State) && open != nil:
		wrong = "still has an open intent"
	default:
		return nil
	}
	return fault.New(extensions.KindInvalid, string(row.ID), fmt.Errorf("a sandbox that is %s %s", row.State, wrong))
}
