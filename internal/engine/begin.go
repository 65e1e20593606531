package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// begin claims the name and records the intent. A taken name is first
// settled as far as that is ours to do; what is left is adopted if the
// request says so, else refused with all that helps.
func (e *Engine) begin(ctx context.Context, l ledger.Ledger, c *creation, notify Notify) (*book.Operation, *Sandbox, error) {
	id, err := extensions.NewID(e.opts.Rand)
	if err != nil {
		return nil, nil, err
	}
	op, err := e.book.Prepare(ctx, l, ledger.IntentCreate, string(id), notify)
	if err != nil {
		return nil, nil, notMade(err)
	}
	told := false
	for {
		if op.Row, err = e.claim(ctx, op, c, id); err == nil {
			return op, nil, nil
		}
		var taken *ledger.NameTaken
		if !errors.As(err, &taken) {
			op.Close()
			w := c.p.liabilityAt(c.p.decision.Chosen)
			return nil, nil, w.unaffordable(notMade(err), c.p.decision.Chosen.ID(), w.ttl)
		}
		settled, wait, err := e.settleTaken(ctx, l, taken.Existing, notify)
		switch {
		case err != nil:
			op.Close()
			return nil, nil, notMade(err)
		case settled:
			continue
		case wait:
			if !told {
				notify.Tell("Waiting for another run", "%s", taken.Error())
				told = true
			}
			if book.WaitForOthers(ctx) == nil {
				continue
			}
		}
		op.Close()
		if c.p.req.OnConflict == "adopt" && !wait {
			s, err := e.adopt(ctx, l, c, taken.Existing, notify)
			return nil, s, err
		}
		return nil, nil, e.nameTaken(taken.Existing)
	}
}

// claim records the request and claims its name in one transaction.
func (e *Engine) claim(ctx context.Context, op *book.Operation, c *creation, id ID) (ledger.Sandbox, error) {
	if err := e.book.CheckClock(); err != nil {
		return ledger.Sandbox{}, err
	}
	now := e.book.Now().UTC().Truncate(time.Microsecond)
	spec, chosen, name := c.p.resolved.Spec, c.p.decision.Chosen, nameFor(c.p.req, id)
	reserve, err := c.p.liabilityAt(chosen).reserve(time.Duration(spec.TTL))
	if err != nil {
		return ledger.Sandbox{}, err
	}
	b := ledger.Begin{
		Key: op.Key, Holder: op.Holder, ID: id, Account: e.account, Name: name,
		Profile: c.p.resolved.ID, ProfileVersion: c.p.resolved.Version, SpecHash: c.p.hashFor(chosen.Binding),
		Request: mustJSON(c.p.req), Spec: mustJSON(c.p.resolved.Spec), Route: mustJSON(routeOf(c.p.decision)),
		TTL: time.Duration(spec.TTL), MaxTTL: time.Duration(spec.MaxTTL),
		CreatedAt: now, ExpiresAt: now.Add(time.Duration(spec.TTL)), Quote: c.p.ledgerQuote(chosen),
		Reserve: reserve, Ceilings: account.CeilingsOf(e.catalog, e.account, c.p.metered()), Metered: c.p.metered(),
		Event: ledger.NewNote("", map[string]any{"profile": c.p.resolved.ID + "@" + c.p.resolved.Version, "consumer": c.p.req.Consumer, "name": name}),
	}
	row, err := op.Ledger.Begin(ctx, b)
	if extensions.IsKind(err, extensions.KindIndeterminate) { // its key makes it happen once
		row, err = op.Ledger.Begin(context.WithoutCancel(ctx), b)
	}
	return row, err
}

// settleTaken looks whether what holds a name still has a right to it: an
// operation under way is waited for; what is overdue, failed or vanished is
// cleaned up and closed first.
func (e *Engine) settleTaken(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, notify Notify) (settled, wait bool, err error) {
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Subject: string(row.ID)})
	if err != nil {
		return false, false, err
	}
	if len(intents) > 0 {
		in := intents[0] // a subject has at most one open
		if over, err := e.book.Abandoned(ctx, l, in); err != nil || !over {
			return false, err == nil, err
		}
		return true, false, e.heldUntil(e.recoverIntent(ctx, l, in, notify), row)
	}
	reason := endReason(e, row)
	gone := row.State == lifecycle.Failed || !row.ExpiresAt.After(e.book.Now())
	if !gone {
		o, err := e.lookAgain(ctx, row)
		if err != nil {
			return false, false, nil // cannot tell: the name stays taken
		}
		gone = o.Phase == extensions.PhaseAbsent || o.Phase == extensions.PhaseExpired
		if o.Phase == extensions.PhaseExpired { // by the place's own clock
			reason = "expired"
		}
	}
	if !gone {
		return false, false, nil
	}
	notify.Tell("Cleaning up before taking its name", "%s (%s) is %s", row.ID, row.Name, lifecycle.Shown(row.State))
	report, err := e.end(ctx, l, row, ended{reason: reason, notify: notify})
	if err = book.Settled(err); err == nil {
		err = report.unsettled // it is over, and its name is still not free
	}
	if err != nil {
		return false, false, e.heldUntil(err, row)
	}
	return true, false, nil
}

// heldUntil explains why a name is not free. Where its last owner's run died,
// whether anything was made may not be provable before the deadline that was
// sent with it.
func (e *Engine) heldUntil(err error, row ledger.Sandbox) error {
	if err == nil {
		return nil
	}
	if e.elsewhere(row, err) {
		return extensions.Errorf(extensions.KindConflict, "the name %q is held by %s, which another machine has to end: %w", row.Name, row.ID, err).
			WithRemedy("run `sandboxer sweep` there, or wait: it counts as ended from %s on; or choose another name", row.ExpiresAt.Add(unresolvedGrace).UTC().Format(time.RFC3339))
	}
	if !extensions.IsKind(err, extensions.KindIndeterminate) {
		x := extensions.Errorf(extensions.KindOf(err), "the name %q is held by %s, which is over but could not be cleaned up: %w", row.Name, row.ID, err)
		return x.WithRemedy("mend the cause and apply again, or choose another name; `sandboxer sandbox get %s` shows it", row.ID)
	}
	x := extensions.Errorf(extensions.KindIndeterminate, "the name %q is held by %s, left by a run that died: nothing proves yet that %s did not make it: %w",
		row.Name, row.ID, candidateName(row), err)
	return x.WithRemedy("wait and apply again: it is settled when %s shows it, and at %s at the latest, when its ttl ends; or choose another name",
		row.Extension, row.ExpiresAt.UTC().Format(time.RFC3339))
}

func (e *Engine) lookAgain(ctx context.Context, row ledger.Sandbox) (extensions.Observation, error) {
	b, err := e.places.Open(ctx, placeOf(row))
	if err != nil {
		return extensions.Observation{}, err
	}
	return b.Look(ctx, row.Handle)
}

// nameTaken says whose the name is and how to get at it. A sandbox is never
// taken silently: if Terraform lost it, an import brings it back.
func (e *Engine) nameTaken(row ledger.Sandbox) error {
	err := &extensions.Error{Kind: extensions.KindConflict, ID: row.ID, Err: e.holderOf(row)}
	return err.WithRemedy("if a run of yours made it and its state was lost, import it:\n\nimport {\n  to = sandboxer_sandbox.NAME # the address of this resource\n  id = %q\n}\n\n"+
		"else choose another name, set on_conflict = \"adopt\" to take it over, or end it: sandboxer sandbox destroy %s", string(row.ID), row.ID)
}

// holderOf describes the sandbox that has a name.
func (e *Engine) holderOf(row ledger.Sandbox) error {
	owner := ""
	if req, err := requestOf(row); err == nil {
		for _, part := range []struct{ label, value string }{{"actor", req.Consumer.Actor}, {"harness", req.Consumer.Harness}, {"run", req.Consumer.RunID}} {
			if part.value != "" {
				owner += fmt.Sprintf(", %s %s", part.label, part.value)
			}
		}
	}
	return fmt.Errorf("the name %q of account %s is taken by sandbox %s: %s at %s, made %s ago from %s, ends %s%s",
		row.Name, row.Account, row.ID, lifecycle.Shown(row.State), candidateName(row), e.book.Now().Sub(row.CreatedAt).Round(time.Second),
		row.Profile, row.ExpiresAt.UTC().Format(time.RFC3339), owner)
}

var usable = []lifecycle.State{lifecycle.Ready, lifecycle.Active}

func endReason(e *Engine, row ledger.Sandbox) string {
	if !row.ExpiresAt.After(e.book.Now()) {
		return "expired"
	}
	return "lost"
}
