package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// movedOn is how a row of the spool ends whose sandbox goes on in the ledger.
const movedOn = "moved"

// replay brings what the spool holds into the ledger, in the order it was made,
// each life in one transaction. A name that somebody else has by now is a
// conflict: both sandboxes stay.
func (e *Engine) replay(ctx context.Context, l ledger.Ledger, notify Notify) error {
	s, err := e.spool(ctx, false)
	if err != nil || s == nil {
		return err
	}
	if err := e.recoverIn(ctx, s, notify); err != nil {
		return err
	}
	rows, err := s.List(ctx, ledger.Filter{Account: e.account})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := e.replayOne(ctx, l, s, row, notify); err != nil {
			return err
		}
	}
	e.books.replayed.Store(true)
	return nil
}

// replayOne moves one sandbox; what somebody works on is left where it is.
func (e *Engine) replayOne(ctx context.Context, l, s ledger.Ledger, row ledger.Sandbox, notify Notify) error {
	switch {
	case row.EndReason == movedOn:
		return nil
	case lifecycle.Terminal(row.State):
		return e.carryOver(ctx, l, s, row, notify)
	}
	open, err := s.OpenIntents(ctx, ledger.IntentFilter{Subject: string(row.ID)})
	if err != nil || len(open) > 0 {
		return err
	}
	op, err := e.openOperation(ctx, s, row, ledger.IntentAdopt, ledger.Change{Event: note("sandbox.moving", nil)}, notify)
	if err != nil {
		return stale(err)
	}
	defer op.close()
	if err := e.carryOver(ctx, l, s, op.row, notify); err != nil {
		return errors.Join(err, op.apply(ctx, ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: extensions.Clean(err.Error(), 500)}}))
	}
	// At once: a run that died in between would leave a sandbox to be ended.
	now, reason, expect := e.now(), movedOn, ledger.Expect{Fence: op.row.Fence, Holder: op.holder}
	_, err = s.Replay(context.WithoutCancel(ctx), nil,
		ledger.Change{ID: row.ID, Key: op.key + "/moving", Expect: expect, To: lifecycle.Destroying},
		ledger.Change{ID: row.ID, Key: op.key + "/moved", To: lifecycle.Destroyed, Patch: ledger.Patch{EndedAt: &now, EndReason: &reason},
			Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Meter: ledger.MeterOps{Close: &ledger.MeterClose{At: now, Source: "ours", Booked: &ledger.Booked{}}},
			Event: note("sandbox.moved", map[string]any{"ledger": l.ID()})})
	return err
}

// carryOver records in l the life that s has of a sandbox. What never ran and
// is over left nothing to record.
func (e *Engine) carryOver(ctx context.Context, l, s ledger.Ledger, row ledger.Sandbox, notify Notify) error {
	b, changes, err := e.lifeOf(ctx, l, s, row)
	if err != nil || b == nil {
		return err
	}
	_, err = l.Replay(ctx, b, changes...)
	var taken *ledger.NameTaken
	if !errors.As(err, &taken) {
		return err
	}
	b.Unclaimed = true
	b.Event = note("sandbox.conflict", map[string]any{"spool": s.ID(), "name": row.Name, "taken_by": taken.Existing.ID})
	reason := fmt.Sprintf("conflict: while the ledger could not be reached, the name %q was taken by %s", row.Name, taken.Existing.ID)
	changes[0].Patch.Reason = &reason
	if _, err := l.Replay(ctx, b, changes...); err != nil {
		return err
	}
	notify.tell("Two sandboxes have one name", "%s, made here while the ledger could not be reached, and %s elsewhere are both called %q. "+
		"Both stay; the name is the latter's. Destroy the one you do not need: sandboxer sandbox destroy %s", row.ID, taken.Existing.ID, row.Name, row.ID)
	return nil
}

// spoolKey makes the move of a sandbox out of a spool happen once.
func spoolKey(spool string, id ID) string { return "spool/" + spool + "/" + string(id) }

// spoolOf reads the spool from a key that spoolKey made, or one of its steps'.
func spoolOf(key string) (spool string, ok bool) {
	rest, ok := strings.CutPrefix(key, "spool/")
	spool, _, whole := strings.Cut(rest, "/")
	return spool, ok && whole
}

// lifeOf tells a row's life as the steps that lead to where it is.
func (e *Engine) lifeOf(ctx context.Context, l, s ledger.Ledger, row ledger.Sandbox) (*ledger.Begin, []ledger.Change, error) {
	meters, err := s.Meters(ctx, row.ID)
	if err != nil || len(meters) == 0 && lifecycle.Terminal(row.State) {
		return nil, nil, err
	}
	holder, err := l.Holder(ctx)
	if err != nil {
		return nil, nil, err
	}
	key := spoolKey(s.ID(), row.ID)
	b := &ledger.Begin{Key: key, Holder: holder, ID: row.ID, Account: row.Account, Name: row.Name, Generation: row.Generation, Unclaimed: !row.ClaimsName,
		Profile: row.Profile, ProfileVersion: row.ProfileVersion, SpecHash: row.SpecHash, Request: row.Request, Spec: row.Spec, Route: row.Route,
		TTL: row.TTL, MaxTTL: row.MaxTTL, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
		Event: note("sandbox.requested", map[string]any{"spool": s.ID(), "name": row.Name})}
	if row.QuoteDigest != "" {
		q, err := s.Quote(ctx, row.QuoteDigest)
		if err != nil {
			return nil, nil, err
		}
		b.Quote = &q
	}
	w := &walk{id: row.ID, key: key}
	w.to(lifecycle.Provisioning, ledger.Change{Patch: ledger.Patch{Extension: &row.Extension, Host: &row.Host, HostRef: &row.HostRef, Handle: &row.Handle, WorkspaceBase: row.WorkspaceBase}})
	confirmed := &ledger.FinishIntent{Outcome: ledger.Confirmed}
	if len(meters) == 0 { // it never was ready, and something may be left of it
		w.to(lifecycle.Failed, ledger.Change{Patch: ledger.Patch{Reason: &row.Reason}, Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: row.Reason}})
		return b, w.steps, nil
	}
	m := meters[len(meters)-1]
	w.ready(row, m, confirmed)
	if lifecycle.Terminal(row.State) {
		charges, err := s.Charges(ctx, row.ID)
		if err != nil {
			return nil, nil, err
		}
		w.to(lifecycle.Destroying, ledger.Change{Intent: &ledger.OpenIntent{Key: key + "/destroy", Kind: ledger.IntentDestroy, Holder: holder}})
		w.to(lifecycle.Destroyed, ledger.Change{Finish: confirmed, Patch: ledger.Patch{EndedAt: &row.EndedAt, EndReason: &row.EndReason, EndEstimated: &row.EndEstimated, Reason: &row.Reason},
			Meter: ledger.MeterOps{Close: &ledger.MeterClose{At: m.ClosedAt, Source: m.EndSource, Estimated: m.EndEstimated,
				Booked: &ledger.Booked{Charges: charges}}}})
	} else if row.State != lifecycle.Ready {
		w.to(row.State, ledger.Change{Patch: ledger.Patch{Reason: &row.Reason}})
	}
	return b, w.steps, nil
}

// walk collects the steps of a life.
type walk struct {
	id    ID
	key   string
	steps []ledger.Change
}

func (w *walk) to(state lifecycle.State, c ledger.Change) {
	c.ID, c.Key, c.To = w.id, fmt.Sprintf("%s/%d", w.key, len(w.steps)+1), state
	w.steps = append(w.steps, c)
}

func (w *walk) ready(row ledger.Sandbox, m ledger.Meter, finish *ledger.FinishIntent) {
	open := &ledger.MeterOpen{At: m.OpenedAt, Source: m.StartSource, Currency: m.Currency, Rates: m.Rates}
	for i, seg := range m.Segments {
		if i == 0 {
			open.Mode, open.Sizes = seg.Mode, seg.Sizes
			w.to(lifecycle.Ready, ledger.Change{Finish: finish, Meter: ledger.MeterOps{Open: open},
				Patch: ledger.Patch{ReadyAt: &row.ReadyAt, SeenAliveAt: &row.SeenAliveAt, Reachability: &row.Reachability, Mode: &row.Mode}})
			continue
		}
		w.to("", ledger.Change{Meter: ledger.MeterOps{Switch: &ledger.MeterSwitch{At: seg.StartedAt, Mode: seg.Mode, Sizes: seg.Sizes}}})
	}
}
