package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// begin claims the name and records the intent. A taken name is first
// settled as far as that is ours to do; what is left is adopted if the
// request says so, else refused with all that helps.
func (e *Engine) begin(ctx context.Context, l ledger.Ledger, c *creation, notify Notify) (*operation, *Sandbox, error) {
	holder, err := l.Holder(ctx)
	if err != nil {
		return nil, nil, err
	}
	id, err := extensions.NewID(e.opts.Rand)
	if err != nil {
		return nil, nil, err
	}
	key, err := e.operationKey(ledger.IntentCreate, id)
	if err != nil {
		return nil, nil, err
	}
	spec := c.p.resolved.Spec
	told := false
	for {
		now := e.now().UTC().Truncate(time.Microsecond)
		chosen := c.p.decision.Chosen
		b := ledger.Begin{
			Key: key, Holder: holder, ID: id, Account: e.account, Name: nameFor(c.p.req, id),
			Profile: c.p.resolved.ID, ProfileVersion: c.p.resolved.Version, SpecHash: c.p.hashFor(chosen.Binding),
			Request: mustJSON(c.p.req), Spec: mustJSON(spec), Route: mustJSON(routeOf(c.p.decision)),
			TTL: time.Duration(spec.TTL), MaxTTL: time.Duration(spec.MaxTTL),
			CreatedAt: now, ExpiresAt: now.Add(time.Duration(spec.TTL)), Quote: c.ledgerQuote(),
			Event: note("", map[string]any{"profile": c.p.resolved.ID + "@" + c.p.resolved.Version, "consumer": c.p.req.Consumer, "name": nameFor(c.p.req, id)}),
		}
		row, err := l.Begin(ctx, b)
		if err == nil {
			return &operation{e: e, l: l, holder: holder, key: key, row: row, notify: notify}, nil, nil
		}
		var taken *ledger.NameTaken
		if !errors.As(err, &taken) {
			return nil, nil, err
		}
		settled, wait, err := e.settleTaken(ctx, l, taken.Existing, notify)
		switch {
		case err != nil:
			return nil, nil, err
		case settled:
			continue
		case wait:
			if !told {
				notify.tell("Waiting for another run", "%s", taken.Error())
				told = true
			}
			if err := sleep(ctx, waitForOthers); err != nil {
				return nil, nil, e.nameTaken(taken.Existing)
			}
			continue
		}
		if c.p.req.OnConflict == "adopt" {
			s, err := e.adopt(ctx, l, c, taken.Existing, notify)
			return nil, s, err
		}
		return nil, nil, e.nameTaken(taken.Existing)
	}
}

// settleTaken looks whether what holds a name still has a right to it: an
// operation under way is waited for; what is overdue, failed or vanished is
// cleaned up and closed first.
func (e *Engine) settleTaken(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, notify Notify) (settled, wait bool, err error) {
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Subject: string(row.ID)})
	if err != nil {
		return false, false, err
	}
	for _, in := range intents {
		alive, err := l.HolderAlive(ctx, in.Holder)
		if err != nil {
			return false, false, err
		}
		if alive {
			return false, true, nil
		}
	}
	if len(intents) > 0 {
		return true, false, e.heldUntil(e.recoverRow(ctx, l, row, notify), row)
	}
	gone := row.State == lifecycle.Failed || !row.ExpiresAt.After(e.now())
	if !gone {
		o, err := e.lookAgain(ctx, row)
		if err != nil {
			return false, false, nil // cannot tell: the name stays taken
		}
		gone = o.Phase == extensions.PhaseAbsent || o.Phase == extensions.PhaseExpired
	}
	if !gone {
		return false, false, nil
	}
	notify.tell("Cleaning up before taking its name", "%s (%s) is %s", row.ID, row.Name, lifecycle.Shown(row.State))
	_, err = e.end(ctx, l, row, ended{reason: endReason(e, row), notify: notify})
	return err == nil, false, e.heldUntil(err, row)
}

// heldUntil explains why a name is not free: whether its last owner made
// anything cannot be proved before the deadline that was sent with it.
func (e *Engine) heldUntil(err error, row ledger.Sandbox) error {
	if !extensions.IsKind(err, extensions.KindIndeterminate) {
		return err
	}
	x := extensions.Errorf(extensions.KindIndeterminate, "the name %q is held by %s, left by a run that died: nothing proves yet that %s did not make it: %w",
		row.Name, row.ID, candidateName(row), err)
	return x.WithRemedy("wait and apply again: it is settled when %s shows it, and at %s at the latest, when its ttl ends; or choose another name",
		row.Extension, row.ExpiresAt.UTC().Format(time.RFC3339))
}

func (e *Engine) lookAgain(ctx context.Context, row ledger.Sandbox) (extensions.Observation, error) {
	b, err := e.backend(ctx, placeOf(row))
	if err != nil {
		return extensions.Observation{}, err
	}
	return e.observeOne(ctx, b, row.Handle)
}

// nameTaken says whose the name is and how to get at it. A sandbox is never
// taken silently: if Terraform lost it, an import brings it back.
func (e *Engine) nameTaken(row ledger.Sandbox) error {
	owner := ""
	if req, err := requestOf(row); err == nil {
		for _, part := range []struct{ label, value string }{{"actor", req.Consumer.Actor}, {"harness", req.Consumer.Harness}, {"run", req.Consumer.RunID}} {
			if part.value != "" {
				owner += fmt.Sprintf(", %s %s", part.label, part.value)
			}
		}
	}
	err := extensions.Errorf(extensions.KindConflict, "the name %q of account %s is taken by sandbox %s: %s at %s, made %s ago from %s, ends %s%s",
		row.Name, row.Account, row.ID, lifecycle.Shown(row.State), candidateName(row), e.now().Sub(row.CreatedAt).Round(time.Second),
		row.Profile, row.ExpiresAt.UTC().Format(time.RFC3339), owner)
	err.ID = row.ID
	return err.WithRemedy("if a run of yours made it and its state was lost, import it:\n\nimport {\n  to = sandboxer_sandbox.NAME # the address of this resource\n  id = %q\n}\n\n"+
		"else choose another name, set on_conflict = \"adopt\" to take it over, or end it: sandboxer sandbox destroy %s", string(row.ID), row.ID)
}

// adopt takes over a live sandbox of the same spec. The generation rises, in
// the ledger and where possible on the object, and fences the former owner off.
func (e *Engine) adopt(ctx context.Context, l ledger.Ledger, c *creation, row ledger.Sandbox, notify Notify) (*Sandbox, error) {
	if hash := c.p.hashFor(row.Extension); hash != row.SpecHash {
		taken := e.nameTaken(row)
		return nil, errors.Join(extensions.Errorf(extensions.KindConflict, "it was made from another specification, so it cannot be adopted"), taken)
	}
	b, err := e.backend(ctx, placeOf(row))
	if err != nil {
		return nil, err
	}
	op, err := e.openOperation(ctx, l, row, ledger.IntentAdopt, ledger.Change{
		Expect: ledger.Expect{States: usable}, NextGeneration: true, Event: note("sandbox.adopting", nil)}, notify)
	if err != nil {
		return nil, err
	}
	if b.binding.Descriptor.Has(extensions.PowerGenerationSet) {
		setter, err := power[extensions.GenerationSetter](e, b, extensions.PowerGenerationSet)
		if err == nil {
			cl := call{op: "set-generation", binding: b.binding.ID, id: row.ID, timeout: timeoutChange}
			err = e.invoke(ctx, cl, func(ctx context.Context) error { return setter.SetGeneration(ctx, row.Handle, op.row.Generation) })
		}
		b.changed()
		if err != nil {
			ferr := op.apply(ctx, ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: extensions.Clean(err.Error(), 500)}, Event: note("sandbox.adopt-failed", nil)})
			return nil, errors.Join(err, ferr)
		}
	}
	err = op.apply(ctx, ledger.Change{Patch: ledger.Patch{Request: mustJSON(c.p.req)}, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Event: note("sandbox.adopted", map[string]any{"consumer": c.p.req.Consumer})})
	if err != nil {
		return nil, err
	}
	s := e.view(op.row)
	s.Notices = append(s.Notices, Notice{Summary: "Adopted a running sandbox", Detail: fmt.Sprintf("%s (%s) was taken over; its former owner can no longer change it.", row.ID, row.Name)})
	return &s, nil
}

var usable = []lifecycle.State{lifecycle.Ready, lifecycle.Active}

func endReason(e *Engine, row ledger.Sandbox) string {
	if !row.ExpiresAt.After(e.now()) {
		return "expired"
	}
	return "lost"
}

// live are the states in which something may exist.
var live = slices.DeleteFunc(slices.Clone(lifecycle.States), lifecycle.Terminal)
