package life

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// SetMode pauses or resumes a live sandbox; its place is asked even if the ledger already has that mode. The
// ttl runs on while it is paused. A mode that its place cannot give is KindUnsupported.
func (m *Manager) SetMode(ctx context.Context, rec plan.Receipt, mode ledger.Mode, notify notice.Notify) (Sandbox, error) {
	l, row, err := m.rowToChange(ctx, rec, notify)
	if err != nil {
		return Sandbox{}, err
	}
	row, err = m.setMode(ctx, l, row, mode, row.ExpiresAt, notify)
	s := m.sealed(ctx, l, row)
	s.Receipt.Lease = rec.Lease
	return s, err
}

// inMode gives a sandbox that was made or adopted the mode that its request wants. If that fails, it stays as it is.
func (m *Manager) inMode(ctx context.Context, l *ledger.Ledger, s Sandbox, want string, notify notice.Notify) (Sandbox, error) {
	if want == "" || want == s.Mode {
		return s, nil
	}
	out := s
	row, err := l.Get(ctx, s.ID)
	if err == nil {
		row, err = m.setMode(ctx, l, row, ledger.Mode(want), row.ExpiresAt, notify)
		out = m.sealed(ctx, l, row)
		out.Notices = s.Notices
	}
	if err == nil {
		return out, nil
	}
	next, r := "it is "+out.Mode+" now: apply again", extensions.RemedyOf(err)
	switch {
	case errors.Is(err, errModeUnknown):
		next = r
	case r != "":
		next = r + "; " + next
	}
	return out, extensions.AtField("desired_mode",
		extensions.Errorf(extensions.KindOf(err), "%w: %w", ErrOtherMode, err).WithRemedy("%s", next))
}

// setMode returns the row as it is then, even with an error. deadline is that of a resumed one.
func (m *Manager) setMode(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, mode ledger.Mode, deadline time.Time,
	notify notice.Notify) (ledger.Sandbox, error) {
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return row, err
	}
	left, powers := m.facts(ctx, placeOf(row)).Narrow(b.Binding.Capabilities, b.Binding.Descriptor.Powers)
	if err := m.checkMode(b.Binding, left, powers, row, mode); err != nil {
		return row, err
	}
	if mode == ledger.Running { // its place gets its end
		if err := m.book.CheckClock(); err != nil {
			return row, err
		}
	}
	begun := "sandbox.resuming"
	if mode == ledger.Paused {
		begun = "sandbox.pausing"
	}
	op, err := m.book.Begin(ctx, l, row, ledger.IntentMode,
		ledger.Change{Expect: ledger.Expect{States: usable}, Event: ledger.NewNote(begun, nil)}, notify)
	if err != nil {
		return row, leftAlone(row, err)
	}
	defer op.Close()
	asked := m.book.Now()
	o, err := m.changeMode(ctx, b, op.Row, mode, deadline)
	done := ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Event: ledger.NewNote("sandbox."+modeDone(mode), nil)}
	if err != nil {
		reason := reasonOf(err)
		done.Finish = &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason}
		done.Event = ledger.NewNote("sandbox.mode-failed", map[string]any{"mode": mode, "reason": reason})
		if errors.Is(err, errModeUnknown) {
			m.leaveOpen(&done)
		}
	}
	merr := m.seenMode(ctx, op, o, asked, &done)
	err = errors.Join(err, merr, op.Apply(ctx, done))
	if err == nil {
		err = failpoint.Hit(ctx, pointModeKept)
	}
	return op.Row, err
}

func modeDone(mode ledger.Mode) string {
	if mode == ledger.Paused {
		return "paused"
	}
	return "resumed"
}

// errModeUnknown is in the error of a change of mode whose place does not say what came of it.
var errModeUnknown = errors.New("not known")

// leaveOpen makes done, the end of an operation, leave one that nobody holds, for the next run to follow the place.
func (m *Manager) leaveOpen(done *ledger.Change) {
	done.Intent = &ledger.OpenIntent{Kind: ledger.IntentMode, Holder: ledger.Nobody}
	m.recovery.again.Store(true)
}

// changeMode asks the place. After a failure it follows what the place then shows, if it can be seen.
func (m *Manager) changeMode(ctx context.Context, b *place.Backend, row ledger.Sandbox, mode ledger.Mode,
	deadline time.Time) (o extensions.Observation, err error) {
	if err := failpoint.Hit(ctx, pointModeBegun); err != nil {
		return o, err
	}
	if mode == ledger.Paused {
		o, err = b.Pause(ctx, row.Handle)
	} else {
		o, err = b.Resume(ctx, row.Handle, deadline)
	}
	if err == nil {
		err = failpoint.Hit(ctx, pointModeSet)
	}
	if err == nil && modeOf(o) != mode {
		err = extensions.Errorf(extensions.KindInternal, "%s reports that sandbox %s is %s now", candidateName(row), row.ID, o.Phase)
	}
	if err == nil {
		return o, nil
	}
	sctx, cancel := settling(ctx)
	defer cancel()
	seen, lookErr := b.Look(sctx, row.Handle)
	switch {
	case lookErr != nil && errors.Is(err, extensions.ErrElsewhere):
		return extensions.Observation{}, err
	case lookErr != nil:
		return extensions.Observation{}, extensions.Errorf(extensions.KindOf(err), "whether sandbox %s (%s) is %s now is %w: %w",
			row.ID, row.Name, mode, errModeUnknown, err).
			WithRemedy("repeat it once %s answers; any change made then first asks in which mode it is", candidateName(row))
	case modeOf(seen) == mode:
		return seen, nil
	}
	return seen, err
}

// modeOf returns the mode that a place shows; "" if it shows none.
func modeOf(o extensions.Observation) ledger.Mode {
	switch o.Phase {
	case extensions.PhasePaused:
		return ledger.Paused
	case extensions.PhaseReady:
		return ledger.Running
	}
	return ""
}

// seenMode completes a change by the mode that a place shows, and switches the meter to it at the place's own
// time. A place without one stops costing once it has answered, and costs again from the time it was asked.
func (m *Manager) seenMode(ctx context.Context, op *book.Operation, o extensions.Observation, asked time.Time, c *ledger.Change) error {
	mode, now := modeOf(o), m.book.Now()
	if mode == "" {
		return nil
	}
	c.Patch.Mode, c.Patch.SeenAliveAt = &mode, &now
	if mode == ledger.Running {
		c.Patch.Reachability = &o.Reachability
	}
	meters, err := op.Ledger.Meters(context.WithoutCancel(ctx), op.Row.ID)
	if err != nil || len(meters) == 0 {
		return err
	}
	open := meters[len(meters)-1]
	if !open.Open() || open.Last().Mode == mode {
		return nil
	}
	at := o.Since
	switch {
	case at.IsZero() && mode == ledger.Running:
		at = asked
	case at.IsZero() || at.After(now):
		at = now
	}
	c.Meter.Switch = &bank.MeterSwitch{At: at, Mode: mode, Sizes: open.Last().Sizes}
	return nil
}

// checkMode refuses a mode that a binding with these capabilities and powers cannot give to a sandbox, and, as a
// create does, a pause of one that several may hold. A paused one that nobody ends but a run could use platform
// credit without end.
func (m *Manager) checkMode(b catalog.Binding, c extensions.Capabilities, powers []extensions.Power, row ledger.Sandbox,
	mode ledger.Mode) error {
	switch {
	case !slices.Contains(powers, extensions.PowerPause):
		return extensions.AtField("desired_mode", m.places.Unsupported(b.ID, extensions.PowerPause))
	case mode == ledger.Paused && shared(row):
		return extensions.AtField("desired_mode", extensions.Invalid("sandbox %s (%s) has scope %s: pausing it would stop the other "+
			"holders' work", "leave it running; only a sandbox of scope session can be paused", row.ID, row.Name, specOf(row).Scope))
	case mode == ledger.Paused && c.PausedExpiry == extensions.ExpirySweep && row.Payer == ledger.AccountWallet:
		return extensions.AtField("desired_mode", extensions.Errorf(extensions.KindUnsupported,
			"platform credit would pay for sandbox %s (%s) without limit: %s does not end a paused sandbox itself", row.ID, row.Name, b.ID).
			WithRemedy("leave it running, or take a sandboxer_snapshot and destroy it"))
	}
	return nil
}

// planMode refuses a new mode of a live sandbox as far as a plan can tell. row is what is known of it.
func (m *Manager) planMode(b catalog.Binding, rec plan.Receipt, row ledger.Sandbox, old, req plan.Request) error {
	switch {
	case req.DesiredMode == "" || req.DesiredMode == old.DesiredMode:
		return nil
	case lifecycle.Overdue(m.book.Now(), rec.ExpiresAt):
		return extensions.AtField("desired_mode", extensions.Invalid("sandbox %s (%s) ended at %s, so its mode cannot change",
			"replace it (terraform apply -replace), or leave desired_mode as it was", rec.ID, rec.Name, rec.ExpiresAt.UTC().Format(time.RFC3339)))
	}
	return m.checkMode(b, b.Capabilities, b.Descriptor.Powers, row, ledger.Mode(req.DesiredMode))
}

// pausedThere reports that a sandbox is paused where nobody ends it meanwhile but a run, so that its deadline
// is the ledger's alone until it is resumed.
func pausedThere(mode ledger.Mode, c extensions.Capabilities) bool {
	return mode == ledger.Paused && c.PausedExpiry == extensions.ExpirySweep
}

// expiry returns who ends a sandbox in a mode; "" if its binding is not in the catalog.
func (m *Manager) expiry(binding string, mode ledger.Mode) string {
	c := m.capabilities(binding)
	if mode == ledger.Paused && c.PauseResume {
		return string(c.PausedExpiry)
	}
	return string(c.Expiry)
}

// wake resumes a paused sandbox whose work must be brought back before its end. One that has ended meanwhile stays
// as it is: the farewell says what is lost, and nothing holds up its end.
func (m *Manager) wake(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, last parting,
	notify notice.Notify) (ledger.Sandbox, error) {
	if row.Mode != ledger.Paused || last.mirror == "" {
		return row, nil
	}
	woken, err := m.setMode(ctx, l, row, ledger.Running, m.wakeUntil(row), notify)
	if err == nil {
		return woken, nil
	}
	if o, lost := m.lookAgain(ctx, row); lost == nil && (o.Phase == extensions.PhaseFailed || slices.Contains(ended, o.Phase)) {
		return woken, nil
	}
	return woken, err
}

// wakeUntil returns a deadline that leaves the time to bring the work back.
func (m *Manager) wakeUntil(row ledger.Sandbox) time.Time {
	if soon := m.book.Now().Add(releaseAll); row.ExpiresAt.Before(soon) {
		return soon
	}
	return row.ExpiresAt
}

// shownMode returns the mode of a sandbox that users see: what has ended or is not ready has none.
func shownMode(state, mode string) string {
	if state != string(lifecycle.Ready) {
		return ""
	}
	return mode
}
