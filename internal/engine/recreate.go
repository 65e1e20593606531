package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Recreate tears a sandbox down and makes it anew from its request under the
// same id, one generation up. The ttl counts anew. secrets must be given
// again: they are stored nowhere. What the ledger cannot record is left as it is
// (ErrLedgerUnusable). The returned Sandbox has an ID unless nothing is left,
// error or not.
func (e *Engine) Recreate(ctx context.Context, rec Receipt, secrets map[string]Secret, notify Notify) (Sandbox, error) {
	e.heardOf(rec)
	l, row, err := e.found(ctx, rec.ID, notify)
	if absent(err) {
		return Sandbox{}, e.unknownHere(rec.ID)
	}
	if err != nil {
		return Sandbox{}, leftAlone(rowOf(rec), err)
	}
	if rec.Generation > 0 && row.Generation > rec.Generation {
		return Sandbox{}, e.fenced(row)
	}
	c := &creation{e: e}
	defer c.release()
	report, err := e.prepareRecreate(ctx, l, row, c, secrets, notify)
	if err != nil { // what is there now still is, and may have been claimed anew
		if now, gerr := l.Get(context.WithoutCancel(ctx), row.ID); gerr == nil {
			row = now
		}
		return e.sealed(ctx, l, row), err
	}
	if err := c.clear(ctx, row); err != nil {
		return c.end(ctx, attempt{err: errors.Join(err, goesOn(ctx, c.Operation))})
	}
	s, err := c.run(ctx)
	s.Notices = append(report.Notices, s.Notices...)
	return s, err
}

// prepareRecreate gathers what the new life needs, saves the work of the old
// one and begins the operation.
func (e *Engine) prepareRecreate(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, c *creation, secrets map[string]Secret, notify Notify) (report DestroyReport, err error) {
	req, err := e.requestAgain(row, secrets)
	if err != nil {
		return report, err
	}
	if c.p, err = e.prepare(ctx, req, preparation{binding: true, again: row.ID}); err != nil {
		return report, err
	}
	if c.secrets, err = e.secrets(ctx, c.p); err != nil {
		return report, err
	}
	if report, err = e.bringBack(ctx, row, notify); err != nil {
		return report, err
	}
	if err = c.openSources(ctx, e, notify); err != nil {
		return report, err
	}
	c.Operation, err = e.beginRecreate(ctx, l, row, c.p, notify)
	return report, err
}

// requestAgain is the recorded request with its secrets, all of them and no other.
func (e *Engine) requestAgain(row ledger.Sandbox, secrets map[string]Secret) (Request, error) {
	req, err := requestOf(row)
	if err != nil {
		return req, extensions.Errorf(extensions.KindInternal, "the ledger's request of %s cannot be read: %w", row.ID, err)
	}
	for _, name := range req.SecretNames {
		if _, ok := secrets[name]; !ok {
			return req, extensions.Invalid("recreating %s needs its secret %s", "pass every secret again: sandboxer stores none", row.ID, name)
		}
	}
	for name := range secrets {
		if !slices.Contains(req.SecretNames, name) {
			return req, extensions.Invalid("sandbox %s was made without a secret %s", "pass the ones it was made with, or make a new sandbox", row.ID, extensions.Clean(name, 80))
		}
	}
	req.Secrets, req.Account = secrets, row.Account
	return req, nil
}

// bringBack does what is due before a sandbox is made anew.
func (e *Engine) bringBack(ctx context.Context, row ledger.Sandbox, notify Notify) (report DestroyReport, err error) {
	last := e.partingOf(row)
	if last.nothing() || !lifecycle.Usable(row.State) {
		return report, nil
	}
	b, err := e.places.Open(ctx, placeOf(row))
	if err != nil {
		return report, err
	}
	err = e.farewell(ctx, b, row, last, &report, notify)
	return report, err
}

func (e *Engine) beginRecreate(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, p *prepared, notify Notify) (*book.Operation, error) {
	if err := e.book.CheckClock(); err != nil {
		return nil, err
	}
	ttl, limit := time.Duration(p.resolved.Spec.TTL), time.Duration(p.resolved.Spec.MaxTTL)
	// The age of a sandbox counts from its first creation; a new life's end
	// counts from now.
	end, err := lifecycle.ExpiresAt(e.book.Now().UTC().Truncate(time.Microsecond), ttl)
	if err != nil {
		return nil, err
	}
	stop := e.endOf(row, row.EndedAt)
	w := p.liabilityAt(p.decision.Chosen)
	reserve, err := w.reserve(ttl)
	if err != nil {
		return nil, err
	}
	op, err := e.book.Begin(ctx, l, row, ledger.IntentRecreate, ledger.Change{
		Expect: ledger.Expect{States: []lifecycle.State{lifecycle.Ready, lifecycle.Active, lifecycle.Failed, lifecycle.Expired}},
		To:     lifecycle.Provisioning, NextGeneration: true, Meter: ledger.MeterOps{Close: stop.Close()},
		Patch: ledger.Patch{Version: &p.resolved.Version, ExpiresAt: &end, TTL: &ttl, MaxTTL: &limit, Spec: mustJSON(p.resolved.Spec), Route: mustJSON(routeOf(p.decision))},
		Quote: p.ledgerQuote(p.decision.Chosen), Reserve: reserve, Ceilings: account.CeilingsOf(e.catalog, row.Account, p.metered()),
		Intent: &ledger.OpenIntent{Metered: p.metered()},
		Event:  ledger.NewNote("sandbox.recreating", nil),
	}, notify)
	return op, w.unaffordable(leftAlone(row, err), p.decision.Chosen.ID(), ttl)
}

// clear removes the old generation before the new one is asked for.
func (c *creation) clear(ctx context.Context, old ledger.Sandbox) error {
	if err := failpoint.Hit(ctx, pointDestroying); err != nil {
		return err
	}
	if old.Extension == "" {
		return nil
	}
	b, err := c.e.places.Open(ctx, placeOf(old))
	if err != nil {
		return err
	}
	var report DestroyReport
	_, err = c.e.endThere(ctx, b, old, &report)
	return err
}
