package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Create makes a sandbox. begun is called once the ledger holds the intent
// and before anything can exist elsewhere. Whenever a sandbox may exist the
// returned Sandbox has an ID, error or not; an error with an empty ID means
// that nothing is left.
func (e *Engine) Create(ctx context.Context, req Request, begun func(Sandbox), notify Notify) (Sandbox, error) {
	p, err := e.prepareRoom(ctx, req, notify)
	if err != nil {
		return Sandbox{}, notMade(err)
	}
	l, err := e.recovered(ctx, notify)
	if err != nil {
		return Sandbox{}, notMade(err)
	}
	c := &creation{p: p}
	defer c.release()
	if c.secrets, err = e.secrets(ctx, p); err != nil {
		return Sandbox{}, err
	}
	if err := c.openSources(ctx, e, notify); err != nil {
		return Sandbox{}, err
	}
	if err := failpoint.Hit(ctx, pointPrepared); err != nil {
		return Sandbox{}, err
	}
	op, adopted, err := e.begin(ctx, l, c, notify)
	if err != nil || adopted != nil {
		return unlessNil(adopted), err
	}
	c.operation = op
	if begun != nil {
		begun(e.sealed(ctx, l, c.row))
	}
	return c.run(ctx)
}

func unlessNil(s *Sandbox) Sandbox {
	if s == nil {
		return Sandbox{}
	}
	return *s
}

// creation is one create or recreate under way.
type creation struct {
	*operation
	p        *prepared
	secrets  map[string]Secret
	sources  sources
	base     []byte // of a mirrored workspace
	attempts []Attempt
	// Of the place that is tried now: whether it was asked, whether an answer of
	// it was lost, and what it made, recorded or not.
	asked, lost bool
	made        extensions.Handle
}

func (c *creation) release() {
	c.sources.close()
	c.operation.close()
}

// run tries the candidates in the order that was fixed before the first one.
func (c *creation) run(ctx context.Context) (Sandbox, error) {
	if err := failpoint.Hit(ctx, pointBegun); err != nil {
		return c.end(ctx, attempt{err: err, clean: true})
	}
	var failures []error
	last := attempt{clean: true}
	for _, cand := range append([]*route.Candidate{c.p.decision.Chosen}, c.p.decision.Fallbacks...) {
		err := c.judge(ctx, cand)
		if ctx.Err() != nil && len(failures) > 0 {
			break // its time ended between two places: what failed has been told
		}
		if last = (attempt{err: err, clean: true, next: true}); err == nil {
			last = c.try(ctx, cand)
		}
		outcome := Attempt{Candidate: cand.ID(), Outcome: string(lifecycle.Ready)}
		if last.err != nil {
			outcome.Outcome, outcome.Reason = string(extensions.KindOf(last.err)), reasonOf(last.err)
			failures = append(failures, last.err)
		}
		c.attempts = append(c.attempts, outcome)
		if last.err == nil {
			return c.confirm(ctx, cand, last)
		}
		if !last.clean || !last.next || ctx.Err() != nil {
			break
		}
		c.notify.tell("Trying the next place", "%s: %s", cand.ID(), outcome.Reason)
	}
	last.err = c.endedFirst(errors.Join(failures...))
	return c.end(ctx, last)
}

// judge refuses a place before anything is asked of it. The first choice was
// judged before anything was recorded.
func (c *creation) judge(ctx context.Context, cand *route.Candidate) error {
	if err := c.e.checkPrice(c.p, cand); err != nil || cand == c.p.decision.Chosen {
		return err
	}
	notes, err := c.e.checkSpec(ctx, c.p, cand, c.sources)
	if n, ok := leftOut(notes); ok {
		c.notify.tell(n.Summary, "%s", n.Detail)
	}
	return err
}

// endedFirst tells of a sandbox whose ttl was over before it was ready.
func (c *creation) endedFirst(err error) error {
	if !lifecycle.Overdue(c.e.now(), c.row.ExpiresAt) {
		return err
	}
	return extensions.AtField("ttl", extensions.Errorf(extensions.KindTimeout, "%s reached the end of its ttl of %s before it was ready (last: %s)",
		c.row.ID, profile.FormatDuration(c.row.TTL), extensions.Clean(err.Error(), 300)).WithRemedy("raise ttl, or find out what is slow"))
}

// attempt is what became of one try at one place.
type attempt struct {
	err     error
	clean   bool // proved: nothing is left there
	next    bool // the failure allows another place
	started time.Time
	reach   extensions.Reachability
}

// confirm records what is ready.
func (c *creation) confirm(ctx context.Context, cand *route.Candidate, a attempt) (Sandbox, error) {
	now := c.e.now()
	err := c.apply(ctx, ledger.Change{
		To:     lifecycle.Ready,
		Patch:  ledger.Patch{ReadyAt: &now, SeenAliveAt: &now, Reachability: &a.reach, Route: c.routeJSON(cand.ID())},
		Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
		Meter:  ledger.MeterOps{Open: c.e.openMeter(c.p.quotes[cand.ID()], a.started)},
		Event:  ledger.NewNote("", map[string]any{"extension": cand.Binding, "host": cand.HostName(), "expires_at": c.row.ExpiresAt}),
	})
	if err != nil {
		// It runs, but nothing remembers that it does: undo it.
		return c.end(ctx, c.undo(ctx, notRecorded(err)))
	}
	return c.e.sealed(ctx, c.l, c.row), failpoint.Hit(ctx, pointConfirmed)
}

// end closes a failed create.
func (c *creation) end(ctx context.Context, a attempt) (Sandbox, error) {
	c.operation.route = c.routeJSON("")
	if a.clean {
		if err := c.discard(ctx, ledger.Failed, "refused", a.err, c.e.endOf(c.row, time.Time{})); err != nil {
			return c.e.sealed(ctx, c.l, c.row), errors.Join(a.err, err)
		}
		return Sandbox{}, givenUp(ctx, c.row, a.err)
	}
	left := extensions.Errorf(extensions.KindOf(a.err), "%w; the sandbox %s may exist at %s", a.err, c.row.ID, candidateName(c.row)).
		WithRemedy("%s", remedyLeft(a.err, c.row.ID))
	if err := c.fail(ctx, a.err, ""); err != nil {
		return c.e.sealed(ctx, c.l, c.row), errors.Join(left, err)
	}
	return c.e.sealed(ctx, c.l, c.row), left
}

// givenUp tells of a create that its caller ended and that left nothing.
func givenUp(ctx context.Context, row ledger.Sandbox, err error) error {
	var why, next string
	kind := extensions.KindTimeout
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		why, next = "was not ready in the time it was given", "run it again, with a longer timeouts.create if the place is slow"
	case ctx.Err() != nil:
		kind, why, next = extensions.KindInterrupted, "was cancelled while it was made", "run the same command again"
	default:
		return err
	}
	return extensions.Errorf(kind, "sandbox %q %s; nothing of it is left: %w", row.Name, why, err).WithRemedy("%s", next)
}

func remedyLeft(err error, id ID) string {
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

// spec completes the resolved request for one place.
func (c *creation) spec(cand *route.Candidate) extensions.Spec {
	s := c.p.spec(cand, c.sources)
	s.ID, s.Account, s.Name, s.Generation = c.row.ID, c.row.Account, c.row.Name, c.row.Generation
	s.CreatedAt, s.Deadline = c.row.CreatedAt, c.row.ExpiresAt
	s.Secrets, s.ProbeLater = c.secrets, equips(s.Toolchain)
	s.Labels = map[string]string{
		extensions.LabelID: string(s.ID), extensions.LabelAccount: s.Account, extensions.LabelGeneration: fmt.Sprint(s.Generation),
		extensions.LabelSpecHash: s.Hash(), extensions.LabelInitialExpires: s.Deadline.UTC().Format(time.RFC3339),
	}
	s.Readiness = insideOf(s).probe(s.Readiness) // after the hash: it is the same request
	return s
}

// hashFor is the spec hash the request has at a binding.
func (p *prepared) hashFor(binding string) string {
	s := p.resolved.Spec
	s.Options = p.resolved.OptionsByExtension[binding]
	return s.Hash()
}

func (c *creation) routeJSON(chosen string) json.RawMessage {
	r := routeOf(c.p.decision)
	r.Chosen, r.Attempts = chosen, c.attempts
	return mustJSON(r)
}

func routeOf(d route.Decision) Route {
	r := Route{Strategy: d.Strategy, Explained: d.Explain(), Order: []string{}, Why: d.Why, Notices: d.Notices}
	for _, c := range d.Order {
		r.Order = append(r.Order, c.ID())
	}
	for _, c := range d.Fallbacks {
		r.Fallbacks = append(r.Fallbacks, c.ID())
	}
	byCandidate := map[string]int{}
	for _, f := range d.Refusals() {
		i, ok := byCandidate[f.Candidate]
		if !ok {
			i = len(r.Refused)
			byCandidate[f.Candidate] = i
			r.Refused = append(r.Refused, Rejected{Candidate: f.Candidate})
		}
		r.Refused[i].Refusals = append(r.Refused[i].Refusals, Refusal{Stage: string(f.Stage), Rule: string(f.Rule), Reason: f.Reason, Remedy: f.Help})
	}
	return r
}

// mustJSON marshals the engine's own views, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

func (p *prepared) ledgerQuote(cand *route.Candidate) *ledger.Quote {
	q := p.quotes[cand.ID()]
	return &ledger.Quote{Body: mustJSON(q), Prices: priceBooks(q)}
}

// priceBooks keeps the prices of a quote; none where nothing is known.
func priceBooks(q meter.Quote) []ledger.PriceBook {
	s := q.Snapshot
	if s.Basis == meter.BasisUnknown {
		return nil
	}
	return []ledger.PriceBook{{Source: s.Source, Version: s.BookVersion, AsOf: s.AsOf, Body: json.RawMessage(s.Encode())}}
}
