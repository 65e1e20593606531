package life

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// adopt takes over a live sandbox of the same spec. It raises the generation in the ledger and, where
// possible, on the object, which fences off the former owner. Its content stays, secrets included; its
// deadline moves to the new owner's ttl.
func (m *Manager) adopt(ctx context.Context, l *ledger.Ledger, c *creation, row ledger.Sandbox, notify notice.Notify) (*Sandbox, error) {
	if shared(row) {
		return nil, m.nameTaken(row)
	}
	if hash := c.decision.SpecAt(row.Extension).Hash(); hash != row.SpecHash {
		return nil, m.notAdoptable(row)
	}
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return nil, err
	}
	// A sandbox that cannot be observed now stays with its owner.
	o, err := b.Look(ctx, row.Handle)
	if err != nil {
		return nil, err
	}
	if o.Phase != extensions.PhaseReady && o.Phase != extensions.PhasePaused {
		return nil, extensions.Errorf(extensions.KindConflict, "%w; it is %s there and cannot be adopted", m.nameOwner(row), o.Phase).
			WithRemedy("choose another name, or destroy it: sandboxer sandbox destroy %s", row.ID)
	}
	op, err := m.book.Begin(ctx, l, row, ledger.IntentAdopt, ledger.Change{
		Expect: ledger.Expect{States: usable}, NextGeneration: true, Event: ledger.NewNote("sandbox.adopting", nil)}, notify)
	if err != nil {
		return nil, leftAlone(row, err)
	}
	defer op.Close()
	if b.Binding.Descriptor.Has(extensions.PowerGenerationSet) {
		if err := b.SetGeneration(ctx, op.Row.Handle, op.Row.Generation); err != nil {
			ferr := op.Apply(ctx, ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: extensions.Clean(err.Error(), 500)},
				Event: ledger.NewNote("sandbox.adopt-failed", nil)})
			return nil, errors.Join(err, ferr)
		}
	}
	deadline, ttl, moved := m.adoptedDeadline(ctx, b, op, c.decision)
	done := ledger.Change{Patch: ledger.Patch{Request: mustJSON(c.decision.Request), ExpiresAt: &deadline, TTL: &ttl},
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Reserve: m.releaseSurplus(ctx, l, op.Row, deadline),
		Event: ledger.NewNote("sandbox.adopted", map[string]any{"consumer": c.decision.Request.Consumer, "expires_at": deadline})}
	found(b, &done.Patch)
	if err = m.seenMode(ctx, op, o, m.book.Now(), &done); err == nil {
		err = op.Apply(ctx, done)
	}
	if err != nil {
		return nil, err
	}
	s := m.sealed(ctx, l, op.Row)
	s.Notices = append(s.Notices, notice.Notice{Summary: "Adopted a running sandbox",
		Detail: fmt.Sprintf("This state took over %s (%s); its former owner can no longer change it.", row.ID, row.Name)})
	if len(c.decision.Request.SecretNames) > 0 {
		s.Notices = append(s.Notices, notice.Notice{Summary: "The adopted sandbox keeps its secrets",
			Detail: fmt.Sprintf("%s keeps its original secrets, not the ones given now. Replace it to give it new ones.", row.ID)})
	}
	if moved != nil {
		s.Notices = append(s.Notices, notice.Notice{Summary: "The adopted sandbox keeps its deadline",
			Detail: fmt.Sprintf("%s ends at %s: %s", row.ID, deadline.UTC().Format(time.RFC3339), moved)})
	}
	return &s, nil
}

func (m *Manager) notAdoptable(row ledger.Sandbox) error {
	err := extensions.Errorf(extensions.KindConflict, "%w; it has another specification and cannot be adopted", m.nameOwner(row))
	err.ID = row.ID
	return err.WithRemedy("use the profile, inputs, env and secret names of its creation, choose another name, or destroy it: sandboxer "+
		"sandbox destroy %s", row.ID)
}

// adoptedDeadline moves the deadline to the new owner's ttl. If that fails, the sandbox is adopted with its old
// deadline.
func (m *Manager) adoptedDeadline(ctx context.Context, b *place.Backend, op *book.Operation,
	d *plan.Decision) (deadline time.Time, ttl time.Duration, why error) {
	row, want := op.Row, time.Duration(d.Resolved.Spec.TTL)
	deadline, err := lifecycle.Retarget(row.CreatedAt, row.ExpiresAt, row.TTL, want, time.Duration(d.Resolved.Spec.MaxTTL))
	if err == nil && !deadline.Equal(row.ExpiresAt) {
		if !deadline.After(m.book.Now()) {
			err = extensions.Errorf(extensions.KindInvalid, "a ttl of %s has already passed", profile.FormatDuration(want))
		} else if err = m.book.CheckClock(); err == nil {
			if err = m.setAside(ctx, op, deadline); err == nil && !m.inLedgerAlone(b, row) {
				err = b.Extend(ctx, row.Handle, deadline)
			}
		}
	}
	if err != nil {
		return row.ExpiresAt, row.TTL, err
	}
	return deadline, want, nil
}

// setAside reserves what a later deadline needs, in a step of its own.
func (m *Manager) setAside(ctx context.Context, o *book.Operation, deadline time.Time) error {
	need, more, err := m.extension(ctx, o.Ledger, o.Row, deadline)
	if err != nil || !more {
		return err
	}
	c := ledger.Change{Event: ledger.NewNote("sandbox.extending", map[string]any{"expires_at": deadline}), Reserve: &need.Reserve,
		Ceilings: need.Ceilings}
	return need.Unaffordable(o.Apply(ctx, c), "the later end")
}
