package life

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// begin claims the name and records the intent. It first settles what holds the name, as far as it may;
// what remains is adopted if the request says so, and otherwise refused with everything that helps.
func (m *Manager) begin(ctx context.Context, l *ledger.Ledger, c *creation, notify notice.Notify) (*book.Operation, *Sandbox, error) {
	id, err := extensions.NewID(m.rand)
	if err != nil {
		return nil, nil, err
	}
	op, err := m.book.Prepare(ctx, l, ledger.IntentCreate, string(id), notify)
	if err != nil {
		return nil, nil, notMade(err)
	}
	told := false
	for {
		if op.Row, err = m.claim(ctx, op, c, id); err == nil {
			return op, nil, nil
		}
		var taken *ledger.NameTaken
		if !errors.As(err, &taken) {
			op.Close()
			first := c.decision.Offers[0]
			return nil, nil, first.Unaffordable(notMade(err), first.ID(), c.decision.TTL)
		}
		settled, wait, err := m.settleTaken(ctx, l, taken.Existing, notify)
		if err == nil && !settled && !wait && plan.Shared(c.decision.Resolved.Spec.Scope) {
			s, err := m.join(ctx, l, c, taken.Existing, notify)
			if err != nil && book.Settled(err) == nil {
				continue // it ended, or was changed, meanwhile
			}
			op.Close()
			return nil, s, notMade(err)
		}
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
		if c.decision.Request.OnConflict == "adopt" && !wait {
			s, err := m.adopt(ctx, l, c, taken.Existing, notify)
			return nil, s, err
		}
		if c.decision.Request.OnConflict == plan.OnConflictReuse && !wait { // another run made it meanwhile
			s, err := m.reuse(ctx, l, c.decision.Asked, taken.Existing, notify)
			return nil, s, err
		}
		return nil, nil, m.nameTaken(taken.Existing)
	}
}

// claim records the request and claims its name in one transaction.
func (m *Manager) claim(ctx context.Context, op *book.Operation, c *creation, id extensions.ID) (ledger.Sandbox, error) {
	if err := m.book.CheckClock(); err != nil {
		return ledger.Sandbox{}, err
	}
	now := m.book.Now().UTC().Truncate(time.Microsecond)
	d, first, spec := c.decision, c.decision.Offers[0], c.decision.Resolved.Spec
	reserve, err := first.Reserve(d.TTL)
	if err != nil {
		return ledger.Sandbox{}, err
	}
	if c.lease == nil && plan.Shared(spec.Scope) {
		if c.lease, err = m.newLease(d, ledger.Sandbox{CreatedAt: now, MaxTTL: time.Duration(spec.MaxTTL)}); err != nil {
			return ledger.Sandbox{}, err
		}
	}
	name := d.Request.NameFor(id)
	b := ledger.Begin{
		Lease: c.lease,
		Key:   op.Key, Holder: op.Holder, ID: id, Account: m.account, Name: name,
		Profile: d.Resolved.ID, ProfileVersion: d.Resolved.Version, SpecHash: first.Hash,
		Request: mustJSON(d.Request), Spec: mustJSON(spec), Route: mustJSON(d.Route),
		TTL: d.TTL, MaxTTL: time.Duration(spec.MaxTTL), CreatedAt: now, ExpiresAt: now.Add(d.TTL),
		Quote: ledgerQuote(first.Quote), Reserve: reserve, Ceilings: d.Ceilings, Metered: d.Metered,
		Event: ledger.NewNote("", map[string]any{"profile": d.Resolved.ID + "@" + d.Resolved.Version, "consumer": d.Request.Consumer,
			"name": name}),
	}
	row, err := op.Ledger.Begin(ctx, b)
	if extensions.IsKind(err, extensions.KindIndeterminate) { // its key makes it happen once
		row, err = op.Ledger.Begin(context.WithoutCancel(ctx), b)
	}
	return row, err
}

// settleTaken checks whether the holder of a name may still keep it. It waits for an operation under way,
// and first cleans up and closes what is overdue, failed or vanished.
func (m *Manager) settleTaken(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox,
	notify notice.Notify) (settled, wait bool, err error) {
	intents, err := l.OpenIntents(ctx, ledger.IntentFilter{Subject: string(row.ID)})
	if err != nil {
		return false, false, err
	}
	if len(intents) > 0 {
		in := intents[0] // a subject has at most one open intent
		if over, err := m.book.Abandoned(ctx, l, in); err != nil || !over {
			return false, err == nil, err
		}
		err := m.recoverIntent(ctx, l, in, notify)
		if err != nil && lifecycle.Usable(row.State) && !lifecycle.Overdue(m.book.Now(), row.ExpiresAt) {
			return false, false, nil //nolint:nilerr // it lives, as far as is known: the name stays taken
		}
		return true, false, m.stillTaken(err, row)
	}
	reason := m.goneBecause(ctx, l, row)
	gone := row.State == lifecycle.Failed || !row.ExpiresAt.After(m.book.Now())
	if !gone {
		o, err := m.lookAgain(ctx, row)
		if err != nil {
			return false, false, nil // unknown: the name stays taken
		}
		gone = slices.Contains(ended, o.Phase)
		if due := endedBecause(o); due != "" {
			reason = due
		}
	}
	if !gone {
		return false, false, nil
	}
	notify.Tell("Cleaning up before taking its name", "%s (%s) is %s", row.ID, row.Name, lifecycle.Shown(row.State))
	report, err := m.end(ctx, l, row, cause{reason: reason, notify: notify})
	if err = book.Settled(err); err == nil {
		err = report.unsettled // it has ended, but its name is still taken
	}
	if err != nil {
		return false, false, m.stillTaken(err, row)
	}
	return true, false, nil
}

// stillTaken explains why a name is still taken: if its last owner's run died, nobody may be able to prove
// that nothing was made before the deadline sent with the request passes.
func (m *Manager) stillTaken(err error, row ledger.Sandbox) error {
	if err == nil {
		return nil
	}
	if m.elsewhere(row, err) {
		who, there := "another machine", "there"
		if m.rented(row.Extension) {
			who, there = "another account", "with the credential of the account that has it"
		}
		x := extensions.Errorf(extensions.KindConflict, "sandbox %[2]s has the name %[1]q, and only %[4]s can end it: %[3]w",
			row.Name, row.ID, err, who)
		if m.expiry(row.Extension, row.Mode) == string(extensions.ExpirySweep) {
			return x.WithRemedy("run `sandboxer sweep` %s: nothing else ends it; or choose another name", there)
		}
		return x.WithRemedy("run `sandboxer sweep` %s, wait until %s, when it counts as ended, or choose another name", there,
			row.ExpiresAt.Add(unresolvedGrace).UTC().Format(time.RFC3339))
	}
	if !extensions.IsKind(err, extensions.KindIndeterminate) {
		x := extensions.Errorf(extensions.KindOf(err), "sandbox %[2]s has the name %[1]q; it has ended but could not be cleaned up: %[3]w",
			row.Name, row.ID, err)
		return x.WithRemedy("fix the cause and apply again, or choose another name; `sandboxer sandbox get %s` shows it", row.ID)
	}
	x := extensions.Errorf(extensions.KindIndeterminate,
		"a run that died asked for sandbox %[2]s with the name %[1]q, and %[3]s may still have created it: %[4]w",
		row.Name, row.ID, candidateName(row), err)
	return x.WithRemedy("apply again later: it is settled once %s shows it, or at its deadline %s; or choose another name",
		row.Extension, row.SentDeadline().UTC().Format(time.RFC3339))
}

// lookAgain asks the place of a row. What has ended elsewhere is absent.
func (m *Manager) lookAgain(ctx context.Context, row ledger.Sandbox) (extensions.Observation, error) {
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return extensions.Observation{}, err
	}
	o, err := b.Look(ctx, row.Handle)
	if m.endedElsewhere(row, err) {
		return extensions.Observation{ID: row.ID, Phase: extensions.PhaseAbsent}, nil
	}
	return o, err
}

// nameTaken says who has the name and how to get at it. A sandbox is never taken over silently: if
// Terraform lost it, an import brings it back.
func (m *Manager) nameTaken(row ledger.Sandbox) error {
	err := &extensions.Error{Kind: extensions.KindConflict, ID: row.ID, Err: m.ownerAs(row, "it")} // the ID comes first
	return err.WithRemedy("if your own run created it and lost its state, import it:\n\nimport {\n  to = sandboxer_sandbox.NAME # the "+
		"address of this resource\n  id = %q\n}\n\n"+
		"otherwise choose another name, set on_conflict = \"adopt\" to take it over, or destroy it: "+
		"sandboxer sandbox destroy %s", string(row.ID), row.ID)
}

// nameOwner describes the sandbox that has a name.
func (m *Manager) nameOwner(row ledger.Sandbox) error {
	return m.ownerAs(row, "sandbox "+string(row.ID))
}

func (m *Manager) ownerAs(row ledger.Sandbox, it string) error {
	owner := ""
	if req, err := requestOf(row); err == nil {
		for _, part := range []struct{ label, value string }{{"actor", req.Consumer.Actor}, {"harness", req.Consumer.Harness},
			{"run", req.Consumer.RunID}} {
			if part.value != "" {
				owner += fmt.Sprintf(", %s %s", part.label, part.value)
			}
		}
	}
	return fmt.Errorf("%[3]s has the name %[1]q in account %[2]s: %[4]s at %[5]s, created %[6]s ago from %[7]s, ends %[8]s%[9]s",
		row.Name, row.Account, it, lifecycle.Shown(row.State), candidateName(row), m.book.Now().Sub(row.CreatedAt).Round(time.Second),
		row.Profile, row.ExpiresAt.UTC().Format(time.RFC3339), owner)
}

var usable = []lifecycle.State{lifecycle.Ready, lifecycle.Active}

func (m *Manager) goneBecause(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) string {
	if m.leftBySnapshot(ctx, l, row) {
		return bySnapshot
	}
	if !row.ExpiresAt.After(m.book.Now()) {
		return "expired"
	}
	return "lost"
}
