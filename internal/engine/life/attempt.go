package life

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// try creates the sandbox at one place: it records the place, provisions, stores the handle at once and
// waits until ready.
func (c *creation) try(ctx context.Context, at *plan.Offer) attempt {
	c.at, c.asked, c.lost, c.made, c.carrier = at, false, false, extensions.Handle{}, nil
	a := c.tryIt(ctx)
	if lost := c.carrier.lost(); lost != nil && a.err != nil { // the other place failed, not this one
		c.m.places.Answered(c.carrier.at, lost)
		a.err, a.next = notCarried(c.decision.Resolved.Spec.FromSnapshot.ID, c.carrier.at, at.Candidate, a.err), false
		return a
	}
	if a.err == nil || !a.elsewhere {
		c.m.places.Answered(c.m.placeOfCandidate(at.Candidate), a.err)
	}
	return a
}

func (c *creation) tryIt(ctx context.Context) attempt {
	hostRef := ""
	if c.at.Host != nil {
		hostRef = c.at.Host.Ref()
	}
	b, err := c.m.places.Open(ctx, place.Address{Binding: c.at.Binding, Account: c.Row.Account, Host: hostRef})
	if err != nil {
		return attempt{err: err, clean: true, next: notHere(err) || extensions.IsKind(err, extensions.KindUnreachable)}
	}
	if err := c.place(ctx, hostRef, b.Identity()); err != nil {
		return attempt{err: err, clean: true, next: allowsNext(err)}
	}
	if err := failpoint.Hit(ctx, pointPlaced); err != nil {
		return attempt{err: err, clean: true}
	}
	spec := c.spec()
	b.Hide(spec.ID, spec.Secrets)
	if spec.FromSnapshot != nil {
		if err := c.m.stillKept(ctx, c.Ledger, spec.FromSnapshot.ID); err != nil {
			return attempt{err: err, clean: true}
		}
	}
	if c.at.Carried {
		if c.carrier, err = c.m.carry(ctx, c.Row.Account, *c.decision.Evidence.Snapshot, c.at.Candidate); err != nil {
			return attempt{err: err, clean: true, elsewhere: true}
		}
		spec.FromSnapshot.Source = c.carrier
	}
	if spec.FromSnapshot != nil && spec.FromSnapshot.Handle.ID == "" {
		if spec.FromSnapshot.Handle, err = b.FindSnapshot(ctx, spec.FromSnapshot.ID); err != nil {
			return attempt{err: snapshotElsewhere(c.at.Candidate, spec.FromSnapshot.ID, err), clean: true}
		}
	}
	making := extensions.WithProgress(ctx, progress(c.Notify, c.m.places.Clock))
	if err := c.prepareImage(making, b, spec); err != nil {
		return attempt{err: err, clean: true, next: notHere(err) || extensions.IsKind(err, extensions.KindUnreachable)}
	}
	obs, err := c.provision(making, b, spec)
	if err != nil {
		return c.settleProvision(ctx, b, err)
	}
	if err := failpoint.Hit(ctx, pointHandle); err != nil {
		return c.tearDown(ctx, b, err)
	}
	if err := c.keepClaim(ctx, b); err != nil {
		return c.tearDown(ctx, b, err)
	}
	a := attempt{}
	a.seen, err = c.equip(making, b, spec, obs)
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

// claimedUntil returns the short first deadline that a create at a place sends; zero if it sends end, as where
// the place cannot move it.
func (m *Manager) claimedUntil(cand *route.Candidate, end time.Time) time.Time {
	if cand.Find.Claim == 0 || !slices.Contains(cand.Powers, extensions.PowerExtend) {
		return time.Time{}
	}
	claimed := m.book.Now().Add(cand.Find.Claim).UTC().Truncate(time.Microsecond)
	if !claimed.Before(end) {
		return time.Time{}
	}
	return claimed
}

// keepClaim gives what was made with a short first deadline its own.
func (c *creation) keepClaim(ctx context.Context, b *place.Backend) error {
	if c.Row.ClaimedUntil.IsZero() {
		return nil
	}
	return b.Extend(ctx, c.made, c.Row.ExpiresAt)
}

// snapshotElsewhere is the error of a snapshot that a place does not show, whether or not that proves that it is not there.
func snapshotElsewhere(cand *route.Candidate, id string, err error) error {
	if !absent(err) && !extensions.IsKind(err, extensions.KindIndeterminate) {
		return err
	}
	return extensions.AtField("from_snapshot",
		extensions.Errorf(extensions.KindInvalid, "snapshot %s is not kept at %s: %w", id, cand.ID(), err).
			WithRemedy("check the ID; a snapshot can be restored only at its own place"))
}

// place records where the next call goes, before the call.
func (c *creation) place(ctx context.Context, hostRef, identity string) error {
	at, host, none := c.at, c.at.HostName(), extensions.Handle{}
	change := ledger.Change{
		Patch: ledger.Patch{Extension: &at.Binding, Host: &host, HostRef: &hostRef, Identity: &identity, SpecHash: &at.Hash,
			Handle: &none, Route: c.routeJSON(at.ID())},
		Event: ledger.NewNote("sandbox.provisioning", map[string]any{"extension": at.Binding, "host": host}),
	}
	change.Patch.WorkspaceBase = c.base
	claimed := c.m.claimedUntil(at.Candidate, c.Row.ExpiresAt)
	change.Patch.ClaimedUntil = &claimed
	if !c.Row.ReadyAt.IsZero() { // of the previous life
		change.Patch.ReadyAt = new(time.Time)
	}
	if at != c.decision.Offers[0] || c.over != nil {
		change.Quote = ledgerQuote(at.Quote)
		// The hold for the previous place or life, of which nothing is left, becomes the hold for this one.
		reserve, err := at.Reserve(c.Row.TTL)
		if err != nil {
			return err
		}
		change.Reserve = reserve
		change.Ceilings = c.decision.Ceilings
	}
	if c.Row.State != lifecycle.Provisioning {
		change.To = lifecycle.Provisioning
	}
	if h := at.Host; h != nil && h.Capacity != nil {
		change.Room = append(change.Room, ledger.Room{Host: h.Name, Max: h.Capacity.MaxSandboxes})
	}
	if b, err := c.m.catalog.Named(at.Binding); err == nil && b.MaxSandboxes != nil {
		change.Room = append(change.Room, ledger.Room{Extension: b.ID, Max: *b.MaxSandboxes})
	}
	if c.over != nil {
		change.Meter = c.over.Meter()
	}
	if err := c.Apply(ctx, change); err != nil {
		return at.Unaffordable(full(err, at.ID()), at.ID(), c.Row.TTL)
	}
	c.over = nil
	return nil
}

// prepareImage lets the place get ready what the sandbox will run, before anything of it exists and can cost.
func (c *creation) prepareImage(ctx context.Context, b *place.Backend, spec extensions.Spec) error {
	if spec.FromSnapshot != nil || spec.FromSandbox != "" { // its images are those it comes from
		return nil
	}
	return b.PrepareImage(ctx, spec)
}

// provision asks once and, after a settled ambiguous failure, once more: by its id, the second call adopts
// what the first one made.
func (c *creation) provision(ctx context.Context, b *place.Backend, spec extensions.Spec) (obs extensions.Observation, err error) {
	ask := func(ctx context.Context) (err error) {
		obs, err = b.Provision(ctx, spec, c.claims, c.answered)
		return err
	}
	err = book.Guarded(ctx, c.Ledger, ask)
	if !extensions.IsKind(err, extensions.KindIndeterminate) || ctx.Err() != nil {
		return obs, err
	}
	// The answer was lost. Find decides before anything else happens, and what it finds exists whatever the
	// next answer says.
	c.lost = true
	h, found := b.FindSettled(ctx, c.Row.ID, c.Row.SentDeadline())
	switch {
	case found == nil:
		c.made = h
		if lost := c.storeHandle(ctx, h, time.Time{}); lost != nil {
			return obs, notRecorded(lost)
		}
	case !absent(found):
		return obs, errors.Join(err, found)
	}
	return obs, book.Guarded(ctx, c.Ledger, ask)
}

// claims renews the first deadline of an attempt once some of it is over, as after a long build of an image, so that
// each attempt has it whole. The ledger has it before the place, and never an earlier one than any place was sent.
func (c *creation) claims(ctx context.Context, spec *extensions.Spec) error {
	if c.Row.ClaimedUntil.IsZero() {
		return nil
	}
	claim, now := c.at.Find.Claim, c.m.book.Now().UTC().Truncate(time.Microsecond)
	if c.Row.ClaimedUntil.Sub(now) < claim-claim/10 {
		until := now.Add(claim)
		if until.After(c.Row.ExpiresAt) {
			until = c.Row.ExpiresAt
		}
		change := ledger.Change{Patch: ledger.Patch{ClaimedUntil: &until}, Event: ledger.NewNote("sandbox.claimed", nil)}
		if err := c.Apply(ctx, change); err != nil {
			return notRecorded(err)
		}
	}
	spec.Deadline = c.Row.ClaimedUntil
	return nil
}

// answered stores what a place made, at once.
func (c *creation) answered(ctx context.Context, h extensions.Handle, obs extensions.Observation, err error) error {
	c.asked = true
	if stop := failpoint.Hit(ctx, pointProvisioned); stop != nil {
		err = errors.Join(err, stop)
	}
	if !h.IsZero() {
		c.made = h
		if lost := c.storeHandle(ctx, h, obs.StartedAt); lost != nil {
			return notRecorded(lost)
		}
	}
	return err
}

// storeHandle records what a place made, and that it may cost from now on.
func (c *creation) storeHandle(ctx context.Context, h extensions.Handle, started time.Time) error {
	if c.Row.Handle.Encode() == h.Encode() {
		return nil
	}
	return c.Apply(ctx, ledger.Change{Patch: ledger.Patch{Handle: &h}, Event: ledger.NewNote("sandbox.handle", map[string]any{"ref": h.Ref}),
		Meter: ledger.MeterOps{Began: c.m.began(c.Row, c.at.Quote, started)}})
}

// notRecorded marks a failure of the ledger, so that it is not taken for one of the place and retried
// there or elsewhere.
func notRecorded(err error) error {
	return extensions.Errorf(extensions.KindInternal, "the sandbox could not be recorded: %w", err).WithRemedy("%s", extensions.RemedyOf(err))
}

// allocated prices and pays for what a place gave, if that is not what was asked for. What then costs too much
// is tried at the next place; until it is gone, it counts as what it is.
func (c *creation) allocated(ctx context.Context, obs extensions.Observation) error {
	given, err := c.decision.Allocated(c.at, obs.Allocated, c.m.book.Now())
	if given == c.at {
		return tooDear(err)
	}
	c.at = given
	counted := ledger.Change{Meter: ledger.MeterOps{Began: c.m.began(c.Row, given.Quote, obs.StartedAt)},
		Event: ledger.NewNote("sandbox.allocated", map[string]any{"sizes": given.Quote.Sizes})}
	if err == nil {
		reserve, rerr := given.Reserve(c.Row.TTL)
		if rerr != nil {
			return rerr
		}
		paid := counted
		paid.Quote, paid.Reserve, paid.Ceilings = ledgerQuote(given.Quote), reserve, c.decision.Ceilings
		err = given.Unaffordable(c.Apply(ctx, paid), given.ID(), c.Row.TTL)
		if err == nil {
			return nil
		}
		if plan.LimitOf(err) == "" {
			return notRecorded(err)
		}
	}
	if lost := c.Apply(ctx, counted); lost != nil {
		return notRecorded(lost)
	}
	return tooDear(err)
}

// dear is a refusal of a place for what it turned out to cost there: another may cost less.
type dear struct{ error }

func (d *dear) Unwrap() error { return d.error }

func tooDear(err error) error {
	if err == nil {
		return nil
	}
	return &dear{err}
}

// allowsNext reports whether another place may be tried after err, once nothing is left at this one.
func allowsNext(err error) bool {
	if d := (*dear)(nil); errors.As(err, &d) {
		return true
	}
	return extensions.IsKind(err, extensions.KindExhausted) || extensions.IsKind(err, extensions.KindUnavailable)
}

// notHere is allowsNext for an answer of a place that has made nothing: what it does not offer, another may.
func notHere(err error) bool {
	return allowsNext(err) || extensions.IsKind(err, extensions.KindUnsupported)
}

// full explains that a place has no room.
func full(err error, candidate string) error {
	var f *ledger.Full
	if !errors.As(err, &f) {
		return err
	}
	return extensions.Errorf(extensions.KindExhausted, "%s is full: %d of at most %d sandboxes are there", candidate, f.Live, f.Max).
		WithRemedy("destroy one, raise capacity.max_sandboxes, or add another host")
}
