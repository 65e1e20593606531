package life

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Create makes a sandbox. It calls begun once the ledger holds the intent and before anything can exist
// elsewhere. Whenever a sandbox may exist, the returned Sandbox has an ID, even with an error; an error
// with an empty ID means that nothing is left.
func (m *Manager) Create(ctx context.Context, req plan.Request, begun func(Sandbox), notify notice.Notify) (Sandbox, error) {
	if req.OnConflict == plan.OnConflictReuse {
		if s, err := m.standing(ctx, req, notify); err != nil || s != nil {
			return unlessNil(s), notMade(err)
		}
	}
	d, err := m.decideRoom(ctx, req, notify)
	if err != nil {
		return Sandbox{}, notMade(err)
	}
	l, err := m.recovered(ctx, notify)
	if err != nil {
		return Sandbox{}, notMade(err)
	}
	c := &creation{m: m, decision: d}
	defer c.release()
	if c.secrets, err = m.secrets(ctx, d); err != nil {
		return Sandbox{}, err
	}
	if err := c.openSources(ctx, notify); err != nil {
		return Sandbox{}, err
	}
	if err := failpoint.Hit(ctx, pointPrepared); err != nil {
		return Sandbox{}, err
	}
	op, adopted, err := m.begin(ctx, l, c, notify)
	switch {
	case err != nil:
		return unlessNil(adopted), err
	case adopted != nil:
		return m.inMode(ctx, l, *adopted, req.DesiredMode, notify)
	}
	c.Operation = op
	if begun != nil {
		begun(c.withLease(m.sealed(ctx, l, c.Row)))
	}
	s, err := c.run(ctx)
	s.Estimate = d.Estimate
	return c.withLease(s), err
}

// withLease adds the lease that came with the sandbox to its receipt.
func (c *creation) withLease(s Sandbox) Sandbox {
	if c.lease != nil && s.ID != "" {
		s.Receipt.Lease = c.lease.ID
	}
	return s
}

// decideRoom decides for a create. If every place is full, it settles what dead runs left and counts
// again.
func (m *Manager) decideRoom(ctx context.Context, req plan.Request, notify notice.Notify) (*plan.Decision, error) {
	d, err := m.decide(ctx, req, purpose{create: true})
	if !extensions.IsKind(err, extensions.KindExhausted) {
		return d, err
	}
	if _, lost := m.recovered(ctx, notify); lost != nil {
		return d, err
	}
	return m.decide(ctx, req, purpose{create: true})
}

func unlessNil(s *Sandbox) Sandbox {
	if s == nil {
		return Sandbox{}
	}
	return *s
}

// creation is one create or recreate under way.
type creation struct {
	*book.Operation
	m        *Manager
	decision *plan.Decision
	secrets  map[string]extensions.Secret
	sources  sources
	checked  verdicts
	base     []byte        // of a mirrored workspace
	lease    *ledger.Lease // the first one on a sandbox that others may hold too
	attempts []plan.Attempt
	// State of the place now being tried: whether it was asked, whether an answer was lost, and what it
	// made, recorded or not.
	at          *plan.Offer
	asked, lost bool
	made        extensions.Handle
	carrier     *carrier // brings the snapshot from another place; nil = it is kept here, or there is none
	// over is the end of what was made before, by the last place or in the life before, and was removed; nil once it is
	// recorded.
	over      *book.Ending
	unsettled bool // the life before is settled by its teardown
}

func (c *creation) release() {
	c.sources.close()
	c.Operation.Close()
}

// run tries the candidates in an order that is fixed before the first attempt.
func (c *creation) run(ctx context.Context) (Sandbox, error) {
	if err := failpoint.Hit(ctx, pointBegun); err != nil {
		return c.end(ctx, attempt{err: err, clean: true})
	}
	var failures []error
	last := attempt{clean: true}
	offers := c.decision.Offers
	for i, offer := range offers {
		err := c.judge(ctx, offer)
		if ctx.Err() != nil && len(failures) > 0 {
			break // its time ended between two places: the failure was reported
		}
		if last = (attempt{err: err, clean: true, next: true}); err == nil {
			last = c.try(ctx, offer)
		}
		outcome := plan.Attempt{Candidate: offer.ID(), Outcome: string(lifecycle.Ready)}
		if last.err != nil {
			outcome.Outcome, outcome.Reason = string(extensions.KindOf(last.err)), reasonOf(last.err)
			failures = append(failures, last.err)
		}
		c.attempts = append(c.attempts, outcome)
		if last.err == nil {
			return c.confirm(ctx, last)
		}
		if !last.clean || !last.next || ctx.Err() != nil || i == len(offers)-1 {
			break
		}
		c.Notify.Tell("Trying the next place", "%s: %s", offer.ID(), outcome.Reason)
	}
	last.err = c.endedFirst(errors.Join(failures...))
	return c.end(ctx, last)
}

// judge refuses a place before anything is asked of it. Some were judged before anything was recorded.
func (c *creation) judge(ctx context.Context, offer *plan.Offer) error {
	if err := c.decision.CheckPrice(offer.Candidate, c.m.book.Now()); err != nil {
		return err
	}
	if verdict, ok := c.checked[offer]; ok {
		return verdict
	}
	notes, err := c.m.checkSpec(ctx, offer, c.sources)
	if n, ok := leftOut(notes); ok {
		c.Notify.Tell(n.Summary, "%s", n.Detail)
	}
	return err
}

// endedFirst returns the error for a sandbox whose ttl ended before it was ready; otherwise err.
func (c *creation) endedFirst(err error) error {
	if !lifecycle.Overdue(c.m.book.Now(), c.Row.ExpiresAt) {
		return err
	}
	return extensions.AtField("ttl", extensions.Errorf(extensions.KindTimeout,
		"%s reached its deadline (ttl %s) before it was ready (last: %s)",
		c.Row.ID, profile.FormatDuration(c.Row.TTL), extensions.Clean(err.Error(), 300)).WithRemedy("raise ttl, or find the cause of the delay"))
}

// attempt is the outcome of trying one place.
type attempt struct {
	err   error
	clean bool // nothing is left there, which is proved
	next  bool // the failure allows trying another place
	// elsewhere says that err is of another place, which the sandbox was to start from.
	elsewhere bool
	seen      extensions.Observation
}

// confirm records that the sandbox is ready.
func (c *creation) confirm(ctx context.Context, a attempt) (Sandbox, error) {
	now := c.m.book.Now()
	err := c.Apply(ctx, ledger.Change{
		To:     lifecycle.Ready,
		Patch:  ledger.Patch{ReadyAt: &now, SeenAliveAt: &now, Reachability: &a.seen.Reachability, Route: c.routeJSON(c.at.ID())},
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Meter:  ledger.MeterOps{Began: c.m.began(c.Row, c.at.Quote, a.seen.StartedAt)},
		Event:  ledger.NewNote("", map[string]any{"extension": c.at.Binding, "host": c.at.HostName(), "expires_at": c.Row.ExpiresAt}),
	})
	if err != nil {
		// It runs, but no ledger records it: undo it.
		return c.end(ctx, c.undo(ctx, notRecorded(err)))
	}
	if err := failpoint.Hit(ctx, pointConfirmed); err != nil {
		return c.m.sealed(ctx, c.Ledger, c.Row), err
	}
	c.Close()
	return c.m.inMode(ctx, c.Ledger, c.m.sealed(ctx, c.Ledger, c.Row), c.decision.Request.DesiredMode, c.Notify)
}

// end closes a failed create.
func (c *creation) end(ctx context.Context, a attempt) (Sandbox, error) {
	c.Route = c.routeJSON("")
	if a.clean {
		over := c.m.endingOf(c.Row, time.Time{})
		if c.over != nil {
			over = *c.over
		}
		if err := c.Discard(ctx, ledger.Failed, "refused", reasonOf(a.err), over); err != nil {
			return c.m.sealed(ctx, c.Ledger, c.Row), errors.Join(a.err, err)
		}
		return Sandbox{}, givenUp(ctx, c.Row, a.err)
	}
	left := extensions.Errorf(extensions.KindOf(a.err), "%w; the sandbox %s may exist at %s", a.err, c.Row.ID, candidateName(c.Row)).
		WithRemedy("%s", remedyLeft(a.err, c.Row.ID))
	if err := c.Fail(ctx, reasonOf(a.err), extensions.KindOf(a.err), ""); err != nil {
		return c.m.sealed(ctx, c.Ledger, c.Row), errors.Join(left, err)
	}
	return c.m.sealed(ctx, c.Ledger, c.Row), left
}

// givenUp describes a create that its caller cancelled and that left nothing.
func givenUp(ctx context.Context, row ledger.Sandbox, err error) error {
	var why, next string
	kind := extensions.KindTimeout
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		why, next = "was not ready in time", "run again, with a longer timeouts.create if the place is slow"
	case ctx.Err() != nil:
		kind, why, next = extensions.KindInterrupted, "was canceled during its creation", "run the same command again"
	default:
		return err
	}
	return extensions.Errorf(kind, "sandbox %q %s, and nothing of it is left: %w", row.Name, why, err).WithRemedy("%s", next)
}

func remedyLeft(err error, id extensions.ID) string {
	text := fmt.Sprintf("`sandboxer sandbox get %s` shows it; a destroy or `sandboxer sandbox destroy %s` cleans it up", id, id)
	if r := extensions.RemedyOf(err); r != "" {
		return r + "; then " + text
	}
	return text
}

func candidateName(row ledger.Sandbox) string {
	if row.Host == "" {
		return row.Extension
	}
	return row.Extension + "@" + row.Host
}

// routeJSON is the route as far as it was tried; chosen is the candidate that holds the sandbox, "" for none.
func (c *creation) routeJSON(chosen string) json.RawMessage {
	r := c.decision.Route
	r.Chosen, r.Attempts = chosen, c.attempts
	return mustJSON(r)
}

// spec completes the request at the place now being tried.
func (c *creation) spec() extensions.Spec {
	s := c.sources.into(c.at.Spec)
	s.ID, s.Account, s.Name, s.Generation = c.Row.ID, c.Row.Account, c.Row.Name, c.Row.Generation
	s.CreatedAt, s.Deadline = c.Row.CreatedAt, c.Row.ExpiresAt
	if !c.Row.ClaimedUntil.IsZero() {
		s.Deadline = c.Row.ClaimedUntil
	}
	s.Secrets, s.ProbeLater = c.secrets, equips(s.Toolchain)
	if b, err := c.m.catalog.Named(c.at.Binding); err == nil {
		s.Registries = c.m.places.Registries(b)
	}
	s.Labels = map[string]string{
		extensions.LabelID: string(s.ID), extensions.LabelAccount: s.Account, extensions.LabelGeneration: fmt.Sprint(s.Generation),
		extensions.LabelSpecHash: s.Hash(), extensions.LabelInitialExpires: c.Row.ExpiresAt.UTC().Format(time.RFC3339),
	}
	s.Readiness = insideOf(s).probe(s.Readiness) // after the hash, as it is the same request
	return s
}
