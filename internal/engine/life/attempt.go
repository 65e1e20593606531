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
func (c *creation) try(ctx context.Context, cand *route.Candidate) attempt {
	a := c.tryAt(ctx, cand)
	if lost := c.carrier.lost(); lost != nil && a.err != nil { // the other place failed, not this one
		c.m.places.Answered(c.carrier.at, lost)
		a.err, a.next = notCarried(c.decision.Resolved.Spec.FromSnapshot.ID, c.carrier.at, cand, a.err), false
		return a
	}
	if a.err == nil || !a.elsewhere {
		c.m.places.Answered(c.m.placeOfCandidate(cand), a.err)
	}
	return a
}

func (c *creation) tryAt(ctx context.Context, cand *route.Candidate) attempt {
	c.at, c.asked, c.lost, c.made, c.carrier = cand, false, false, extensions.Handle{}, nil
	hostRef := ""
	if cand.Host != nil {
		hostRef = cand.Host.Ref()
	}
	b, err := c.m.places.Open(ctx, place.Address{Binding: cand.Binding, Account: c.Row.Account, Host: hostRef})
	if err != nil {
		return attempt{err: err, clean: true, next: notHere(err) || extensions.IsKind(err, extensions.KindUnreachable)}
	}
	if err := c.place(ctx, cand, hostRef); err != nil {
		return attempt{err: err, clean: true, next: allowsNext(err)}
	}
	if err := failpoint.Hit(ctx, pointPlaced); err != nil {
		return attempt{err: err, clean: true}
	}
	spec := c.spec(cand)
	b.Hide(spec.ID, spec.Secrets)
	if spec.FromSnapshot != nil {
		if err := c.m.stillKept(ctx, c.Ledger, spec.FromSnapshot.ID); err != nil {
			return attempt{err: err, clean: true}
		}
	}
	if c.decision.Carries(cand) {
		if c.carrier, err = c.m.carry(ctx, c.Row.Account, *c.decision.Evidence.Snapshot, cand); err != nil {
			return attempt{err: err, clean: true, elsewhere: true}
		}
		spec.FromSnapshot.Source = c.carrier
	}
	if spec.FromSnapshot != nil && spec.FromSnapshot.Handle.ID == "" {
		if spec.FromSnapshot.Handle, err = b.FindSnapshot(ctx, spec.FromSnapshot.ID); err != nil {
			return attempt{err: snapshotElsewhere(cand, spec.FromSnapshot.ID, err), clean: true}
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

func snapshotElsewhere(cand *route.Candidate, id string, err error) error {
	if !absent(err) {
		return err
	}
	return extensions.AtField("from_snapshot",
		extensions.Errorf(extensions.KindInvalid, "snapshot %s is not kept at %s: %w", id, cand.ID(), err).
			WithRemedy("check the ID; a snapshot can be restored only at its own place"))
}

// place records where the next call goes, before the call.
func (c *creation) place(ctx context.Context, cand *route.Candidate, hostRef string) error {
	host, hash, none := cand.HostName(), c.decision.SpecAt(cand.Binding).Hash(), extensions.Handle{}
	change := ledger.Change{
		Patch: ledger.Patch{Extension: &cand.Binding, Host: &host, HostRef: &hostRef, SpecHash: &hash, Handle: &none,
			Route: c.routeJSON(cand.ID())},
		Event: ledger.NewNote("sandbox.provisioning", map[string]any{"extension": cand.Binding, "host": host}),
	}
	change.Patch.WorkspaceBase = c.base
	claimed := c.m.claimedUntil(cand, c.Row.ExpiresAt)
	change.Patch.ClaimedUntil = &claimed
	if !c.Row.ReadyAt.IsZero() { // of the previous life
		change.Patch.ReadyAt = new(time.Time)
	}
	if cand != c.decision.Choice.Chosen {
		change.Quote = ledgerQuote(c.decision.Quote(cand))
		// The hold for the previous place, where nothing is left, becomes the hold for this one.
		reserve, err := c.decision.LiabilityAt(cand).Reserve(c.Row.TTL)
		if err != nil {
			return err
		}
		change.Reserve = reserve
		change.Ceilings = plan.Ceilings(c.m.catalog, c.Row.Account, c.decision.Metered())
	}
	if c.Row.State != lifecycle.Provisioning {
		change.To = lifecycle.Provisioning
	}
	if h := cand.Host; h != nil && h.Capacity != nil {
		change.Room = append(change.Room, ledger.Room{Host: h.Name, Max: h.Capacity.MaxSandboxes})
	}
	if b, err := c.m.catalog.Named(cand.Binding); err == nil && b.MaxSandboxes != nil {
		change.Room = append(change.Room, ledger.Room{Extension: b.ID, Max: *b.MaxSandboxes})
	}
	if c.over != nil {
		change.Meter = c.over.Meter()
	}
	if err := c.Apply(ctx, change); err != nil {
		return c.decision.LiabilityAt(cand).Unaffordable(full(err, cand.ID()), cand.ID(), c.Row.TTL)
	}
	c.over = nil
	return nil
}

// provision asks once and, after a settled ambiguous failure, once more: by its id, the second call adopts
// what the first one made.
func (c *creation) provision(ctx context.Context, b *place.Backend, spec extensions.Spec) (obs extensions.Observation, err error) {
	ask := func(ctx context.Context) (err error) {
		obs, err = b.Provision(ctx, spec, c.answered)
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
		Meter: ledger.MeterOps{Began: c.m.began(c.Row, c.decision.Quote(c.at), started)}})
}

// notRecorded marks a failure of the ledger, so that it is not taken for one of the place and retried
// there or elsewhere.
func notRecorded(err error) error {
	return extensions.Errorf(extensions.KindInternal, "the sandbox could not be recorded: %w", err).WithRemedy("%s", extensions.RemedyOf(err))
}

// allocated prices and pays for what a place gave, if that is not what was asked for. What then costs too much
// is tried at the next place.
func (c *creation) allocated(ctx context.Context, obs extensions.Observation) error {
	differs, err := c.decision.Allocated(c.at, obs.Allocated, c.m.book.Now())
	if err != nil || !differs {
		return tooDear(err)
	}
	w, q := c.decision.LiabilityAt(c.at), c.decision.Quote(c.at)
	reserve, err := w.Reserve(c.Row.TTL)
	if err != nil {
		return err
	}
	err = w.Unaffordable(c.Apply(ctx, ledger.Change{Quote: ledgerQuote(q), Reserve: reserve,
		Ceilings: plan.Ceilings(c.m.catalog, c.Row.Account, c.decision.Metered()),
		Meter:    ledger.MeterOps{Began: c.m.began(c.Row, q, obs.StartedAt)},
		Event:    ledger.NewNote("sandbox.allocated", map[string]any{"sizes": q.Sizes})}), c.at.ID(), c.Row.TTL)
	if err != nil && plan.LimitOf(err) == "" {
		return notRecorded(err)
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
