package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// try makes the sandbox at one place: record the place, ask, store the
// handle at once, wait until ready.
func (c *creation) try(ctx context.Context, cand *route.Candidate) attempt {
	a := c.tryAt(ctx, cand)
	c.e.answered(c.e.placeOfCandidate(cand), a.err)
	return a
}

func (c *creation) tryAt(ctx context.Context, cand *route.Candidate) attempt {
	c.asked, c.lost, c.made = false, false, extensions.Handle{}
	hostRef := ""
	if cand.Host != nil {
		hostRef = cand.Host.Ref()
	}
	b, err := c.e.backend(ctx, place{binding: cand.Binding, account: c.row.Account, host: hostRef})
	if err != nil {
		return attempt{err: err, clean: true, next: allowsNext(err) || extensions.IsKind(err, extensions.KindUnreachable)}
	}
	if err := c.place(ctx, cand, hostRef); err != nil {
		return attempt{err: err, clean: true, next: allowsNext(err)}
	}
	if err := failpoint.Hit(ctx, pointPlaced); err != nil {
		return attempt{err: err, clean: true}
	}
	spec := c.spec(cand)
	if spec.FromSnapshot != nil && spec.FromSnapshot.Handle.ID == "" {
		if spec.FromSnapshot.Handle, err = c.e.findSnapshotAt(ctx, b, spec.FromSnapshot.ID); err != nil {
			return attempt{err: snapshotElsewhere(cand, spec.FromSnapshot.ID, err), clean: true}
		}
	}
	obs, err := c.provision(ctx, b, spec)
	if err != nil {
		return c.settleProvision(ctx, b, err)
	}
	if err := failpoint.Hit(ctx, pointHandle); err != nil {
		return c.tearDown(ctx, b, err)
	}
	a := attempt{started: obs.StartedAt}
	a.reach, err = c.equip(ctx, b, spec, obs)
	if err == nil {
		err = failpoint.Hit(ctx, pointReady)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return c.tearDown(ctx, b, err)
	}
	return a
}

func snapshotElsewhere(cand *route.Candidate, id string, err error) error {
	if !absent(err) {
		return err
	}
	return at("from_snapshot", extensions.Errorf(extensions.KindInvalid, "snapshot %s is not kept at %s: %w", id, cand.ID(), err).
		WithRemedy("check the id; a snapshot can be restored only where it is kept"))
}

func (c *creation) waitReady(ctx context.Context, b *opened, spec extensions.Spec) (reach extensions.Reachability, err error) {
	wait := call{op: "wait-ready", binding: b.binding.ID, id: spec.ID, timeout: timeoutReady, secrets: spec.Secrets}
	err = c.e.invoke(ctx, wait, func(ctx context.Context) (err error) {
		reach, err = b.WaitReady(ctx, spec, c.made)
		return err
	})
	b.changed()
	return reach, err
}

// place records where the next call goes, before it goes.
func (c *creation) place(ctx context.Context, cand *route.Candidate, hostRef string) error {
	host, hash, none := cand.HostName(), c.p.hashFor(cand.Binding), extensions.Handle{}
	change := ledger.Change{
		Patch: ledger.Patch{Extension: &cand.Binding, Host: &host, HostRef: &hostRef, SpecHash: &hash, Handle: &none, Route: c.routeJSON(cand.ID())},
		Event: note("sandbox.provisioning", map[string]any{"extension": cand.Binding, "host": host}),
	}
	change.Patch.WorkspaceBase = c.base
	if !c.row.ReadyAt.IsZero() { // of the life before
		change.Patch.ReadyAt = new(time.Time)
	}
	if cand != c.p.decision.Chosen {
		change.Quote = c.p.ledgerQuote(cand)
		// What was set aside for the place before, where nothing is left, is
		// turned into what this one needs.
		var err error
		if change.Reserve, err = c.p.liabilityAt(cand).reserve(c.row.TTL); err != nil {
			return err
		}
		change.Ceilings = c.e.ceilingsOf(c.row.Account, c.p.metered())
	}
	if c.row.State != lifecycle.Provisioning {
		change.To = lifecycle.Provisioning
	}
	if h := cand.Host; h != nil && h.Capacity != nil {
		change.Room = append(change.Room, ledger.Room{Host: h.Name, Max: h.Capacity.MaxSandboxes})
	}
	if b, err := c.e.binding(cand.Binding); err == nil && b.MaxSandboxes != nil {
		change.Room = append(change.Room, ledger.Room{Extension: b.ID, Max: *b.MaxSandboxes})
	}
	return c.p.liabilityAt(cand).unaffordable(full(c.apply(ctx, change), cand.ID()), cand.ID(), c.row.TTL)
}

// provision asks once and, after an ambiguous failure that was settled, once
// more: by its id the call adopts what the first one made.
func (c *creation) provision(ctx context.Context, b *opened, spec extensions.Spec) (extensions.Observation, error) {
	var obs extensions.Observation
	call := call{op: "provision", binding: b.binding.ID, id: spec.ID, timeout: timeoutProvision, secrets: spec.Secrets}
	ask := func(ctx context.Context) error {
		c.asked = true
		h, o, err := b.Provision(ctx, spec)
		b.changed()
		if stop := failpoint.Hit(ctx, pointProvisioned); stop != nil {
			err = errors.Join(err, stop)
		}
		if !h.IsZero() {
			c.made = h
			if lost := c.storeHandle(ctx, h); lost != nil {
				return notRecorded(lost)
			}
		}
		obs = o
		return err
	}
	err := held(ctx, c.l, func(ctx context.Context) error { return c.e.invoke(ctx, call, ask) })
	if !extensions.IsKind(err, extensions.KindIndeterminate) || ctx.Err() != nil {
		return obs, err
	}
	// The answer was lost. Find decides before anything else happens, and what it
	// finds is there whatever the next answer says.
	c.lost = true
	h, found := c.find(ctx, b)
	switch {
	case found == nil:
		c.made = h
		if lost := c.storeHandle(ctx, h); lost != nil {
			return obs, notRecorded(lost)
		}
	case !absent(found):
		return obs, errors.Join(err, found)
	}
	return obs, held(ctx, c.l, func(ctx context.Context) error { return c.e.invoke(ctx, call, ask) })
}

func (c *creation) storeHandle(ctx context.Context, h extensions.Handle) error {
	if c.row.Handle.Encode() == h.Encode() {
		return nil
	}
	return c.apply(ctx, ledger.Change{Patch: ledger.Patch{Handle: &h}, Event: note("sandbox.handle", map[string]any{"ref": h.Ref})})
}

// notRecorded keeps a failure of the ledger from being read as one of the
// place, which would be asked again or passed over for the next one.
func notRecorded(err error) error {
	return extensions.Errorf(extensions.KindInternal, "what was made could not be recorded: %w", err).WithRemedy("%s", extensions.RemedyOf(err))
}

// settleProvision decides what a failed provision left behind, and removes it.
func (c *creation) settleProvision(ctx context.Context, b *opened, cause error) attempt {
	if !c.asked {
		return attempt{err: cause, clean: true}
	}
	if !c.made.IsZero() {
		return c.tearDown(ctx, b, cause)
	}
	switch extensions.KindOf(cause) {
	case extensions.KindExhausted, extensions.KindUnavailable, extensions.KindInvalid, extensions.KindUnauthorized, extensions.KindUnsupported:
		return attempt{err: cause, clean: true, next: allowsNext(cause)}
	case extensions.KindUnreachable:
		if !c.lost { // no call of this create has arrived
			return attempt{err: cause, clean: true, next: true}
		}
	}
	sctx, cancel := settling(ctx)
	defer cancel()
	h, err := c.find(sctx, b)
	switch {
	case absent(err):
		return attempt{err: cause, clean: true, next: extensions.IsKind(cause, extensions.KindIndeterminate)}
	case err != nil:
		return attempt{err: extensions.Errorf(extensions.KindOf(cause), "%w; looking for what it made: %w", cause, err)}
	}
	c.made = h
	if err := c.storeHandle(sctx, h); err != nil {
		cause = errors.Join(cause, notRecorded(err))
	}
	return c.tearDown(ctx, b, cause)
}

func allowsNext(err error) bool {
	return extensions.IsKind(err, extensions.KindExhausted) || extensions.IsKind(err, extensions.KindUnavailable)
}

// undo is tearDown of what is ready.
func (c *creation) undo(ctx context.Context, cause error) attempt {
	b, err := c.e.backend(context.WithoutCancel(ctx), placeOf(c.row))
	if err != nil {
		return attempt{err: errors.Join(cause, err)}
	}
	return c.tearDown(ctx, b, cause)
}

// tearDown removes what a failed create made, even though the caller gave up.
func (c *creation) tearDown(ctx context.Context, b *opened, cause error) attempt {
	sctx, cancel := settling(ctx)
	defer cancel()
	if _, err := c.e.teardown(sctx, b, c.made); err != nil {
		return attempt{err: errors.Join(cause, err)}
	}
	return attempt{err: cause, clean: true, next: allowsNext(cause)}
}

// teardown ends one sandbox at its place and drops the listing.
func (e *Engine) teardown(ctx context.Context, b *opened, h extensions.Handle) (extensions.CleanupReport, error) {
	var report extensions.CleanupReport
	c := call{op: "teardown", binding: b.binding.ID, id: h.ID, timeout: timeoutTeardown}
	err := e.invoke(ctx, c, func(ctx context.Context) (err error) {
		report, err = b.Teardown(ctx, h)
		return err
	})
	b.changed()
	if absent(err) {
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	return report, err
}

// find looks the operation's sandbox up by id alone.
func (o *operation) find(ctx context.Context, b *opened) (extensions.Handle, error) {
	return o.e.findAt(ctx, b, o.row.ID, o.row.ExpiresAt)
}

// busyLimit bounds the wait for what still works on a sandbox at its place,
// such as a script that has outlived the run that started it.
const busyLimit = 5 * time.Minute

// busy tells when to look again, after a Find that found somebody at work;
// zero for every other outcome.
func busy(err error) time.Duration {
	if !extensions.IsKind(err, extensions.KindConflict) {
		return 0
	}
	var x *extensions.Error
	for errors.As(err, &x) {
		if x.RetryAfter > 0 {
			return x.RetryAfter
		}
		err = x.Err
	}
	return 0
}

// findAt looks a sandbox up by id. Where finding nothing proves nothing, it is
// looked for until the place's settle time is over; after that, absence still
// counts only once the native deadline sent at create has passed.
func (e *Engine) findAt(ctx context.Context, b *opened, id ID, deadline time.Time) (extensions.Handle, error) {
	find := b.binding.Descriptor.Find
	start := time.Now()
	for {
		h, err := e.findOnce(ctx, b, id)
		if pause := busy(err); pause > 0 && time.Since(start) < busyLimit && sleep(ctx, pause) == nil {
			continue
		}
		if err == nil || find.Strength == extensions.FindStrong || !extensions.IsKind(err, extensions.KindIndeterminate) {
			return h, err
		}
		settled := find.Strength == extensions.FindEventual && time.Since(start) >= find.Settle
		native := b.binding.Capabilities.Expiry == extensions.ExpiryNative
		if settled && native && e.now().After(deadline.Add(find.Settle)) {
			return h, extensions.Errorf(extensions.KindNotFound, "not found within %s and past its native deadline", find.Settle)
		}
		if find.Strength == extensions.FindNone || settled || sleep(ctx, find.Settle/8) != nil {
			return h, err
		}
	}
}

func (e *Engine) findOnce(ctx context.Context, b *opened, id ID) (extensions.Handle, error) {
	var h extensions.Handle
	c := call{op: "find", binding: b.binding.ID, id: id, timeout: timeoutLook}
	err := e.invoke(ctx, c, func(ctx context.Context) (err error) {
		h, err = b.Find(ctx, id)
		return err
	})
	return h, err
}
