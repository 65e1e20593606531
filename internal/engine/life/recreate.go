package life

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Recreate tears a sandbox down and makes it again from its request, with the same id and the next
// generation. The ttl starts again. secrets must be given again, since they are stored nowhere. If the
// ledger cannot record it, the sandbox is left as it is (ErrLedgerUnusable). The returned Sandbox has an
// ID unless nothing is left, even with an error.
func (m *Manager) Recreate(ctx context.Context, rec plan.Receipt, secrets map[string]extensions.Secret,
	notify notice.Notify) (Sandbox, error) {
	m.heardOf(rec)
	l, row, err := m.found(ctx, rec.ID, notify)
	if absent(err) {
		return Sandbox{}, m.unknownHere(rec.ID)
	}
	if err != nil {
		return Sandbox{}, leftAlone(rowOf(rec), err)
	}
	if err := m.notOurs(ctx, l, row, rec); err != nil {
		return Sandbox{}, err
	}
	c := &creation{m: m}
	defer c.release()
	if c.lease, err = m.leaseAgain(ctx, l, row, rec.Lease); err != nil {
		return m.sealed(ctx, l, row), err
	}
	report, err := m.prepareRecreate(ctx, l, row, c, secrets, notify)
	if err != nil { // what is there still exists, and another run may have claimed it
		if now, gerr := l.Get(context.WithoutCancel(ctx), row.ID); gerr == nil {
			row = now
		}
		return m.sealed(ctx, l, row), err
	}
	if err := c.clear(ctx, row); err != nil {
		return c.end(ctx, attempt{err: errors.Join(err, goesOn(ctx, c.Operation))})
	}
	s, err := c.run(ctx)
	s.Receipt.Lease = rec.Lease
	s.Notices = append(report.Notices, s.Notices...)
	return s, err
}

// prepareRecreate gathers what the new life needs, saves the work of the old one and begins the operation.
func (m *Manager) prepareRecreate(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, c *creation,
	secrets map[string]extensions.Secret, notify notice.Notify) (report DestroyReport, err error) {
	req, err := m.requestAgain(row, secrets)
	if err != nil {
		return report, err
	}
	if c.decision, err = m.decide(ctx, req, purpose{create: true, again: row.ID}); err != nil {
		return report, err
	}
	if c.secrets, err = m.secrets(ctx, c.decision); err != nil {
		return report, err
	}
	if report, err = m.bringBack(ctx, l, row, notify); err != nil {
		return report, err
	}
	if err = c.openSources(ctx, notify); err != nil {
		return report, err
	}
	return report, c.beginAgain(ctx, l, row, notify)
}

// requestAgain returns the recorded request with exactly its secrets.
func (m *Manager) requestAgain(row ledger.Sandbox, secrets map[string]extensions.Secret) (plan.Request, error) {
	req, err := requestOf(row)
	if err != nil {
		return req, extensions.Errorf(extensions.KindInternal, "the ledger's request of %s cannot be read: %w", row.ID, err)
	}
	for _, name := range req.SecretNames {
		if _, ok := secrets[name]; !ok {
			return req, extensions.Invalid("re-creating %s needs its secret %s", "pass every secret again: sandboxer stores none", row.ID, name)
		}
	}
	for name := range secrets {
		if !slices.Contains(req.SecretNames, name) {
			return req, extensions.Invalid("sandbox %s was created without a secret %s", "pass its original secrets, or create a new sandbox",
				row.ID, extensions.Clean(name, 80))
		}
	}
	req.Secrets, req.Account = secrets, row.Account
	return req, nil
}

// bringBack does what must happen before a sandbox is re-created.
func (m *Manager) bringBack(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox,
	notify notice.Notify) (report DestroyReport, err error) {
	last := m.partingOf(row)
	if last.nothing() || !lifecycle.Usable(row.State) {
		return report, nil
	}
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return report, err
	}
	if row, err = m.wake(ctx, l, row, last, notify); err != nil {
		return report, err
	}
	err = m.farewell(ctx, b, row, last, &report, notify)
	return report, err
}

// beginAgain begins the next life. It settles the one before and reserves for the next in one transaction: here, or where
// only the teardown tells what was used and the funds for both are there, when it places the next life.
func (c *creation) beginAgain(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox, notify notice.Notify) error {
	m, d, lease := c.m, c.decision, c.lease
	if err := m.book.CheckClock(); err != nil {
		return err
	}
	ttl, limit := d.TTL, time.Duration(d.Resolved.Spec.MaxTTL)
	// The age of a sandbox counts from its first creation; the deadline of a new life counts from now.
	end, err := lifecycle.ExpiresAt(m.book.Now().UTC().Truncate(time.Microsecond), ttl)
	if err != nil {
		return err
	}
	stop, less, err := m.stopMeasured(ctx, l, row)
	if err != nil {
		return err
	}
	running, first := ledger.Running, d.Offers[0]
	reserve, err := first.Reserve(ttl)
	if err != nil {
		return err
	}
	settles := stop.Meter()
	if c.unsettled = less && m.coveredBeside(ctx, l, row, reserve, d.Ceilings); c.unsettled {
		settles, reserve = ledger.MeterOps{}, nil
	}
	expect := ledger.Expect{States: []lifecycle.State{lifecycle.Ready, lifecycle.Active, lifecycle.Failed, lifecycle.Expired}}
	if lease != nil {
		lease.ExpiresAt, expect.Fence = end, row.Fence // unless somebody joined meanwhile
	}
	c.Operation, err = m.book.Begin(ctx, l, row, ledger.IntentRecreate, ledger.Change{
		Expect: expect, Lease: lease,
		To: lifecycle.Provisioning, NextGeneration: true, Meter: settles,
		Patch: ledger.Patch{Mode: &running, Version: &d.Resolved.Version, ExpiresAt: &end, TTL: &ttl, MaxTTL: &limit,
			Spec: mustJSON(d.Resolved.Spec), Route: mustJSON(d.Route)},
		Quote: ledgerQuote(first.Quote), Reserve: reserve, Ceilings: d.Ceilings,
		Intent: &ledger.OpenIntent{Metered: d.Metered},
		Event:  ledger.NewNote("sandbox.recreating", nil),
	}, notify)
	return first.Unaffordable(leftAlone(row, err), first.ID(), ttl)
}

// clear removes the old generation before the new one is asked for.
func (c *creation) clear(ctx context.Context, old ledger.Sandbox) error {
	if err := failpoint.Hit(ctx, pointDestroying); err != nil {
		return err
	}
	if old.Extension == "" {
		return nil
	}
	b, err := c.m.places.Open(ctx, placeOf(old))
	if err != nil {
		return err
	}
	var report DestroyReport
	if !c.unsettled {
		_, err = c.m.endThere(ctx, nil, b, old, &report)
		return err
	}
	over, err := c.m.endThere(ctx, c.Ledger, b, old, &report)
	if err == nil {
		c.over = &over
	}
	return err
}
