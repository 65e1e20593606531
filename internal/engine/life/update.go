package life

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// PlanUpdate checks an in-place change of a live sandbox: a TTL that its backend cannot give, a mode that
// it lacks. It neither dials nor writes. An edited profile of the same version is a notice.
func (m *Manager) PlanUpdate(ctx context.Context, rec plan.Receipt, old, req plan.Request) ([]notice.Notice, error) {
	m.heardOf(rec)
	if err := req.Check(); err != nil {
		return nil, err
	}
	l, row, known := m.rowFor(ctx, rec)
	was, err := requestOf(row)
	known = known && err == nil
	if known {
		req = lasting(req, was)
		if req.Recreates(old) {
			if _, err := m.leaseAgain(ctx, l, row, rec.Lease); err != nil {
				return nil, extensions.AtField("triggers", err)
			}
		}
	}
	resolved, err := plan.Merge(m.catalog.Profiles, req)
	if err != nil {
		return nil, err
	}
	var notices []notice.Notice
	asked := plan.Asked{Request: req, Resolved: resolved}
	if known && !madeAs(row, was, &asked) && old.Profile == req.Profile {
		notices = append(notices, notice.Notice{Summary: "The profile has changed since the sandbox was created",
			Detail: resolved.ID + "@" + resolved.Version +
				" now resolves differently; the sandbox keeps its original content. " +
				"Replace it (terraform apply -replace) to use the new content, and " +
				"raise a profile's version when you change it."})
	}
	b, err := m.catalog.Named(rec.Extension)
	if err != nil {
		return notices, err
	}
	if err := m.planMode(b, rec, row, old, req); err != nil {
		return notices, err
	}
	ttl := time.Duration(resolved.Spec.TTL)
	if old.TTL == req.TTL {
		return notices, nil // the deadline stays, whatever the profile says now
	}
	if lifecycle.Overdue(m.book.Now(), rec.ExpiresAt) {
		return notices, extensions.AtField("ttl", extensions.Invalid("sandbox %s (%s) ended at %s, so its ttl can no longer change",
			"replace it (terraform apply -replace), or set on_expiry = \"replace\"", rec.ID, rec.Name, rec.ExpiresAt.UTC().Format(time.RFC3339)))
	}
	end := rec.CreatedAt.Add(ttl)
	if before, err := plan.Merge(m.catalog.Profiles, old); err == nil {
		if end, err = lifecycle.Retarget(rec.CreatedAt, rec.ExpiresAt, time.Duration(before.Spec.TTL), ttl, 0); err != nil {
			return notices, err
		}
	}
	if !end.Equal(rec.ExpiresAt) {
		if err := m.movable(b, b.Capabilities, b.Descriptor.Powers, row.Mode, rec.ExpiresAt, end); err != nil {
			return notices, err
		}
	}
	if err := checkLongest(b, b.Capabilities, ttl); err != nil {
		return notices, err
	}
	if err := m.checkNewEnd(rec, ttl); err != nil || !known {
		return notices, err
	}
	if err := m.checkLaterCost(ctx, l, row, ttl, time.Duration(resolved.Spec.MaxTTL), req.MaxCost); err != nil {
		return notices, err
	}
	told, err := m.plannedExtension(ctx, l, row, row.CreatedAt.Add(ttl), req.Together)
	return append(notices, told...), err
}

// lasting returns a request with what no change in place changes: its origin, which is history, where it was to run, and the names of
// secrets, which are write-only, if it has none.
func lasting(req, was plan.Request) plan.Request {
	req.FromSnapshot, req.FromSandbox, req.Extension = was.FromSnapshot, was.FromSandbox, was.Extension
	if req.SecretNames == nil && len(req.Secrets) == 0 {
		req.SecretNames = was.SecretNames
	}
	return req
}

// checkLongest refuses a ttl that a binding with these capabilities cannot give.
func checkLongest(b catalog.Binding, c extensions.Capabilities, ttl time.Duration) error {
	limit := route.MaxTTL(c)
	if limit == 0 || ttl <= limit {
		return nil
	}
	return extensions.Invalid("a ttl of %s is above the maximum of %s (%s)", "shorten ttl", profile.FormatDuration(ttl), b.ID,
		profile.FormatDuration(limit))
}

// movable refuses a deadline that a binding with these capabilities and powers cannot move to another time. Where
// only the ledger knows it, it can always be moved.
func (m *Manager) movable(b catalog.Binding, c extensions.Capabilities, powers []extensions.Power, mode ledger.Mode,
	from, to time.Time) error {
	switch {
	case c.Expiry == extensions.ExpirySweep || pausedThere(mode, c):
		return nil
	case c.ExtendTTL == extensions.ExtendNone || !slices.Contains(powers, extensions.PowerExtend):
		return m.places.Unsupported(b.ID, extensions.PowerExtend)
	case c.ExtendTTL == extensions.ExtendLater && to.Before(from):
		return extensions.AtField("ttl", extensions.Errorf(extensions.KindUnsupported,
			"%s cannot move a deadline to an earlier time, and %s is before %s", b.ID, to.UTC().Format(time.RFC3339),
			from.UTC().Format(time.RFC3339)).
			WithRemedy("keep the ttl and destroy the sandbox when it is no longer needed, or replace it (terraform apply -replace)"))
	}
	return nil
}

// checkMovable refuses a new end that the sandbox's place, by its facts, cannot give.
func (m *Manager) checkMovable(ctx context.Context, b catalog.Binding, row ledger.Sandbox, deadline time.Time) error {
	left, powers := m.facts(ctx, placeOf(row)).Narrow(b.Capabilities, b.Descriptor.Powers)
	if err := m.movable(b, left, powers, row.Mode, row.ExpiresAt, deadline); err != nil {
		return err
	}
	return checkLongest(b, left, deadline.Sub(row.CreatedAt))
}

// checkNewEnd refuses a ttl that would already be over.
func (m *Manager) checkNewEnd(rec plan.Receipt, ttl time.Duration) error {
	deadline, err := lifecycle.ExpiresAt(rec.CreatedAt, ttl)
	if err != nil {
		return err
	}
	if !deadline.After(m.book.Now()) {
		return extensions.Invalid("a ttl of %s, counted from %s, has already passed", "choose a longer ttl, or destroy the sandbox",
			profile.FormatDuration(ttl), rec.CreatedAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// Update applies an in-place change (ttl, hosts) and records changes that concern only the state. SetMode
// changes the mode.
func (m *Manager) Update(ctx context.Context, rec plan.Receipt, req plan.Request, notify notice.Notify) (Sandbox, error) {
	if err := req.Check(); err != nil {
		return Sandbox{}, err
	}
	resolved, err := plan.Merge(m.catalog.Profiles, req)
	if err != nil {
		return Sandbox{}, err
	}
	l, row, err := m.rowToChange(ctx, rec, notify)
	if err != nil {
		return Sandbox{}, err
	}
	ttl, limit := time.Duration(resolved.Spec.TTL), time.Duration(resolved.Spec.MaxTTL)
	if prev, err := requestOf(row); err == nil {
		req = lasting(req, prev)
		if req.TTL == prev.TTL { // the profile's default may have been edited since
			ttl = row.TTL
		}
	}
	if req.SecretNames == nil {
		req.SecretNames = slices.Sorted(maps.Keys(req.Secrets))
	}
	patch := ledger.Patch{Request: mustJSON(req)}
	m.rename(row, req.Hosts, &patch)
	patch.TTL = &ttl
	if rec.Lease != "" {
		return m.updateLease(ctx, l, row, rec, req, time.Duration(resolved.Spec.TTL), notify)
	}
	if err := m.checkLaterCost(ctx, l, row, ttl, limit, req.MaxCost); err != nil {
		return Sandbox{}, leftAlone(row, err)
	}
	return m.retarget(ctx, l, row, ttl, limit, patch, notify)
}

// ExtendTTL moves the deadline to created-at + ttl; see lifecycle.Retarget. It is for others than the
// owner: the owner's ttl stays recorded, so that the owner's next change does not undo the extension, and
// the owner's max_cost applies.
func (m *Manager) ExtendTTL(ctx context.Context, rec plan.Receipt, ttl time.Duration) (Sandbox, error) {
	l, row, err := m.rowToChange(ctx, rec, nil)
	if err != nil {
		return Sandbox{}, err
	}
	if owner, err := requestOf(row); err == nil {
		if err := m.checkLaterCost(ctx, l, row, ttl, row.MaxTTL, owner.MaxCost); err != nil {
			return Sandbox{}, leftAlone(row, err)
		}
	}
	return m.retarget(ctx, l, row, ttl, row.MaxTTL, ledger.Patch{}, nil)
}

// rowToChange finds a live row for a change. A sandbox made with another machine's ledger has no row here
// and cannot be changed from here.
func (m *Manager) rowToChange(ctx context.Context, rec plan.Receipt, notify notice.Notify) (*ledger.Ledger, ledger.Sandbox, error) {
	m.heardOf(rec)
	l, row, err := m.found(ctx, rec.ID, notify)
	if absent(err) {
		return nil, row, m.unknownHere(rec.ID)
	}
	if err != nil {
		return nil, row, leftAlone(rowOf(rec), err)
	}
	if err := m.notOurs(ctx, l, row, rec); err != nil {
		return nil, row, err
	}
	return l, row, m.changeable(row)
}

// changeable refuses a change of what has ended.
func (m *Manager) changeable(row ledger.Sandbox) error {
	if lifecycle.Usable(row.State) && !lifecycle.Overdue(m.book.Now(), row.ExpiresAt) {
		return nil
	}
	state := lifecycle.Shown(row.State)
	if lifecycle.Usable(row.State) {
		state = string(lifecycle.Expired)
	}
	return extensions.Errorf(extensions.KindConflict, "sandbox %s (%s) is %s and cannot be changed", row.ID, row.Name, state).
		WithRemedy("recreate it")
}

// found looks up a row for a change, after recovery.
func (m *Manager) found(ctx context.Context, id extensions.ID, notify notice.Notify) (l *ledger.Ledger, row ledger.Sandbox, err error) {
	if l, err = m.recovered(ctx, notify); err == nil {
		row, err = l.Get(ctx, id)
	}
	return l, row, err
}

// unknownHere is the error where only the ledger could answer.
func (m *Manager) unknownHere(id extensions.ID) error {
	return extensions.Errorf(extensions.KindNotFound, "the ledger %s does not know sandbox %s", m.book.URL(), id).
		WithRemedy("use its own ledger (the provider's ledger or state_dir), or replace the sandbox")
}

// retarget moves the deadline and applies patch in one operation.
func (m *Manager) retarget(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, ttl, maxTTL time.Duration, patch ledger.Patch,
	notify notice.Notify) (Sandbox, error) {
	deadline, err := lifecycle.Retarget(row.CreatedAt, row.ExpiresAt, row.TTL, ttl, maxTTL)
	if err != nil {
		return Sandbox{}, err
	}
	if !deadline.Equal(row.ExpiresAt) && !deadline.After(m.book.Now()) {
		return Sandbox{}, m.checkNewEnd(m.receipt(row), ttl)
	}
	now, err := m.moveEnd(ctx, l, row, deadline, ledger.Change{}, ledger.Change{Patch: patch}, notify)
	if now.ID == "" {
		return Sandbox{}, err
	}
	return m.sealed(ctx, l, now), err
}

// moveEnd moves the deadline in one operation, which begins with change and ends with done. It returns no row if nothing
// was begun.
func (m *Manager) moveEnd(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, deadline time.Time, change, done ledger.Change,
	notify notice.Notify) (_ ledger.Sandbox, err error) {
	var b *place.Backend
	begun := ledger.NewNote("sandbox.changing", nil)
	if !deadline.Equal(row.ExpiresAt) {
		if err := m.book.CheckClock(); err != nil {
			return ledger.Sandbox{}, err
		}
		if b, err = m.places.Open(ctx, placeOf(row)); err != nil {
			return ledger.Sandbox{}, err
		}
		if err := m.checkMovable(ctx, b.Binding, row, deadline); err != nil {
			return ledger.Sandbox{}, err
		}
		begun = ledger.NewNote("sandbox.extending", map[string]any{"expires_at": deadline})
	}
	change.Expect.States = usable
	if change.Event.Type == "" {
		change.Event = begun
	}
	need, more, err := m.extension(ctx, l, row, deadline)
	if err != nil {
		return ledger.Sandbox{}, leftAlone(row, err)
	}
	if more {
		change.Reserve, change.Ceilings = &need.Reserve, need.Ceilings
	}
	op, err := m.book.Begin(ctx, l, row, ledger.IntentExtend, change, notify)
	if err != nil {
		return ledger.Sandbox{}, need.Unaffordable(leftAlone(row, err),
			fmt.Sprintf("sandbox %s (%s), which lives until %s,", row.ID, row.Name, row.ExpiresAt.UTC().Format(time.RFC3339)))
	}
	defer op.Close()
	done.Finish = &ledger.FinishIntent{Outcome: ledger.Confirmed}
	if done.Event.Type == "" {
		done.Event = ledger.NewNote("sandbox.changed", nil)
	}
	if b != nil {
		if settled, err := m.moveDeadline(ctx, b, op.Row, deadline); err != nil {
			reason := extensions.Clean(err.Error(), 500)
			failed := ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason},
				Event: ledger.NewNote("sandbox.extend-failed", map[string]any{"reason": reason})}
			if settled {
				failed.Reserve = m.releaseSurplus(ctx, l, op.Row, op.Row.ExpiresAt)
			}
			ferr := op.Apply(ctx, failed)
			return op.Row, errors.Join(err, ferr)
		}
		done.Patch.ExpiresAt = &deadline
		if !m.inLedgerAlone(b, op.Row) {
			found(b, &done.Patch)
		}
		if done.Event.Type == "sandbox.changed" {
			done.Event = ledger.NewNote("sandbox.extended", map[string]any{"expires_at": deadline})
		}
		done.Reserve = m.releaseSurplus(ctx, l, op.Row, deadline)
	}
	err = op.Apply(ctx, done)
	return op.Row, err
}

// moveDeadline moves the backend's deadline. After an ambiguous failure, it follows what the backend now
// enforces; if that cannot be seen, it requests the old deadline again, so that backend and ledger agree.
// With an error, settled says that the old deadline certainly holds.
func (m *Manager) moveDeadline(ctx context.Context, b *place.Backend, row ledger.Sandbox, deadline time.Time) (settled bool, err error) {
	if err := failpoint.Hit(ctx, pointExtending); err != nil {
		return true, err
	}
	if m.inLedgerAlone(b, row) {
		return true, nil
	}
	err = b.Extend(ctx, row.Handle, deadline)
	switch extensions.KindOf(err) {
	case "":
		err = failpoint.Hit(ctx, pointExtended)
		if err == nil {
			return true, nil
		}
	case extensions.KindIndeterminate, extensions.KindTimeout, extensions.KindInternal:
	default:
		return true, err
	}
	sctx, cancel := settling(ctx)
	defer cancel()
	if o, lookErr := b.Look(sctx, row.Handle); lookErr == nil && endsAt(b, o, deadline) {
		return true, nil
	}
	if back := b.Extend(sctx, row.Handle, row.ExpiresAt); back != nil && !absent(back) {
		return false, errors.Join(err, back)
	}
	return true, err
}

// inLedgerAlone reports that the ledger alone says when a sandbox ends.
func (m *Manager) inLedgerAlone(b *place.Backend, row ledger.Sandbox) bool {
	c := b.Binding.Capabilities
	return pausedThere(row.Mode, c) || !b.Binding.Descriptor.Has(extensions.PowerExtend) && c.Expiry == extensions.ExpirySweep
}

// endsAt reports that a place ends what was observed at a deadline, up to its grain.
func endsAt(b *place.Backend, o extensions.Observation, deadline time.Time) bool {
	late := o.Deadline.Sub(deadline)
	return late > -time.Second && late < b.Binding.Capabilities.DeadlineGrain+time.Second
}

// checkLaterCost refuses a later deadline of a live sandbox if its worst case, at the prices it is settled
// with, exceeds maxCost. A deadline that is not later passes: it costs no more than what was agreed.
func (m *Manager) checkLaterCost(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, ttl, maxTTL time.Duration,
	maxCost string) error {
	deadline, err := lifecycle.Retarget(row.CreatedAt, row.ExpiresAt, row.TTL, ttl, maxTTL)
	if maxCost == "" || err != nil || !deadline.After(row.ExpiresAt) {
		return nil // moving the deadline reports the mistake
	}
	w, runs, err := m.liabilityOf(ctx, l, row)
	if err != nil || !runs {
		return err
	}
	return w.CheckLaterCost(fmt.Sprintf("sandbox %s (%s)", row.ID, row.Name), deadline.Sub(row.CreatedAt), ttl, maxCost)
}
