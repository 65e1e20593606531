package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// try makes the sandbox at one place: record the place, ask, store the
// handle at once, wait until ready.
func (c *creation) try(ctx context.Context, cand *route.Candidate) attempt {
	a := c.tryAt(ctx, cand)
	c.e.places.Answered(c.e.placeOfCandidate(cand), a.err)
	return a
}

func (c *creation) tryAt(ctx context.Context, cand *route.Candidate) attempt {
	c.asked, c.lost, c.made = false, false, extensions.Handle{}
	hostRef := ""
	if cand.Host != nil {
		hostRef = cand.Host.Ref()
	}
	b, err := c.e.places.Open(ctx, place.Address{Binding: cand.Binding, Account: c.row.Account, Host: hostRef})
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
		if spec.FromSnapshot.Handle, err = b.FindSnapshot(ctx, spec.FromSnapshot.ID); err != nil {
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
	return extensions.AtField("from_snapshot", extensions.Errorf(extensions.KindInvalid, "snapshot %s is not kept at %s: %w", id, cand.ID(), err).
		WithRemedy("check the id; a snapshot can be restored only where it is kept"))
}

// place records where the next call goes, before it goes.
func (c *creation) place(ctx context.Context, cand *route.Candidate, hostRef string) error {
	host, hash, none := cand.HostName(), c.p.hashFor(cand.Binding), extensions.Handle{}
	change := ledger.Change{
		Patch: ledger.Patch{Extension: &cand.Binding, Host: &host, HostRef: &hostRef, SpecHash: &hash, Handle: &none, Route: c.routeJSON(cand.ID())},
		Event: ledger.NewNote("sandbox.provisioning", map[string]any{"extension": cand.Binding, "host": host}),
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
		change.Ceilings = account.CeilingsOf(c.e.catalog, c.row.Account, c.p.metered())
	}
	if c.row.State != lifecycle.Provisioning {
		change.To = lifecycle.Provisioning
	}
	if h := cand.Host; h != nil && h.Capacity != nil {
		change.Room = append(change.Room, ledger.Room{Host: h.Name, Max: h.Capacity.MaxSandboxes})
	}
	if b, err := c.e.catalog.Named(cand.Binding); err == nil && b.MaxSandboxes != nil {
		change.Room = append(change.Room, ledger.Room{Extension: b.ID, Max: *b.MaxSandboxes})
	}
	return c.p.liabilityAt(cand).unaffordable(full(c.apply(ctx, change), cand.ID()), cand.ID(), c.row.TTL)
}

// provision asks once and, after an ambiguous failure that was settled, once
// more: by its id the call adopts what the first one made.
func (c *creation) provision(ctx context.Context, b *place.Backend, spec extensions.Spec) (obs extensions.Observation, err error) {
	ask := func(ctx context.Context) (err error) {
		obs, err = b.Provision(ctx, spec, c.answered)
		return err
	}
	err = held(ctx, c.l, ask)
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
	return obs, held(ctx, c.l, ask)
}

// answered stores at once what a place made.
func (c *creation) answered(ctx context.Context, h extensions.Handle, err error) error {
	c.asked = true
	if stop := failpoint.Hit(ctx, pointProvisioned); stop != nil {
		err = errors.Join(err, stop)
	}
	if !h.IsZero() {
		c.made = h
		if lost := c.storeHandle(ctx, h); lost != nil {
			return notRecorded(lost)
		}
	}
	return err
}

func (c *creation) storeHandle(ctx context.Context, h extensions.Handle) error {
	if c.row.Handle.Encode() == h.Encode() {
		return nil
	}
	return c.apply(ctx, ledger.Change{Patch: ledger.Patch{Handle: &h}, Event: ledger.NewNote("sandbox.handle", map[string]any{"ref": h.Ref})})
}

// notRecorded keeps a failure of the ledger from being read as one of the
// place, which would be asked again or passed over for the next one.
func notRecorded(err error) error {
	return extensions.Errorf(extensions.KindInternal, "what was made could not be recorded: %w", err).WithRemedy("%s", extensions.RemedyOf(err))
}

// settleProvision decides what a failed provision left behind, and removes it.
func (c *creation) settleProvision(ctx context.Context, b *place.Backend, cause error) attempt {
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
	b, err := c.e.places.Open(context.WithoutCancel(ctx), placeOf(c.row))
	if err != nil {
		return attempt{err: errors.Join(cause, err)}
	}
	return c.tearDown(ctx, b, cause)
}

// tearDown removes what a failed create made, even though the caller gave up.
func (c *creation) tearDown(ctx context.Context, b *place.Backend, cause error) attempt {
	sctx, cancel := settling(ctx)
	defer cancel()
	if _, err := b.Teardown(sctx, c.made); err != nil {
		return attempt{err: errors.Join(cause, err)}
	}
	return attempt{err: cause, clean: true, next: allowsNext(cause)}
}

// find looks the operation's sandbox up by id alone.
func (o *operation) find(ctx context.Context, b *place.Backend) (extensions.Handle, error) {
	return b.FindSettled(ctx, o.row.ID, o.row.ExpiresAt)
}
