package life

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// purpose says what a decision is for, and so which evidence it may use.
type purpose struct {
	// create says that ledger counts and answers of places decide too.
	create bool
	// again is the sandbox that is being re-created; "" for a new one.
	again extensions.ID
	// quote holds what a quote may use beyond a plan.
	quote plan.QuoteOptions
	// tell says that missing funds are only reported and refuse nothing.
	tell bool
}

// decide resolves a request, gathers the evidence and decides. If a create lacks evidence, it gathers that
// and decides again. A decision returned with an error may be shown beside it.
func (m *Manager) decide(ctx context.Context, req plan.Request, why purpose) (*plan.Decision, error) {
	asked, err := plan.Ask(m.catalog.Profiles, req)
	if err != nil {
		return nil, err
	}
	if w := asked.Resolved.Spec.Workspace; req.FromSandbox == "" {
		if err := workspace.Check(w.Repo, w.Ref); err != nil {
			return nil, err
		}
	}
	g := &gathering{m: m, asked: asked, probed: map[place.Address]probe{}}
	if err := g.gather(ctx, why); err != nil {
		return nil, err
	}
	for {
		d, lacks, err := plan.Decide(m.catalog, asked, g.ev)
		if err != nil {
			return nil, err
		}
		if lacks.Nothing() {
			return d, d.Refused()
		}
		g.findOut(ctx, lacks)
	}
}

// gathering collects the evidence of one decision.
type gathering struct {
	m      *Manager
	asked  *plan.Asked
	ev     plan.Evidence
	probed map[place.Address]probe
}

// gather collects the evidence of a decision. It dials only if a create depends on a host that nobody has
// registered.
func (g *gathering) gather(ctx context.Context, why purpose) (err error) {
	m, req := g.m, g.asked.Request
	ev := plan.Evidence{Account: cmp.Or(req.Account, m.account), Now: m.book.Now(), Here: here, Create: why.create,
		Expected: why.quote.Expected,
		At:       map[string]plan.Seen{}}
	from := g.asked.Resolved.Spec.FromSnapshot
	if ev.Snapshot, err = m.origin(ctx, from); err != nil {
		return err
	}
	if s := ev.Snapshot; s != nil { // the profile may give its name
		g.asked.Resolved.Spec.FromSnapshot = &extensions.SnapshotRef{ID: s.ID}
	}
	if ev.Source, err = m.source(ctx, g.asked); err != nil {
		return err
	}
	var listed bool
	if ev.Hosts, listed, err = m.hostsOf(ctx, g.asked, ev.Source); err != nil {
		return err
	}
	ev.FromLedger = listed || from != nil || ev.Source != nil // where its origin lives decides where it can be
	if why.create {
		ev.Occupancy = m.occupied(ctx, req, why.again)
		ev.Granted = m.granted(ctx, req.Billing, ev.Account)
	}
	if why.quote.History {
		ev.Past = m.past(ctx, g.asked.Resolved.ID)
	}
	g.ev = ev
	g.lookAround(ctx)
	return nil
}

// findOut gathers what a decision lacks.
func (g *gathering) findOut(ctx context.Context, lacks plan.Lacks) {
	m := g.m
	switch {
	case lacks.Health != nil:
		id, at := lacks.Health.ID(), m.placeOfCandidate(lacks.Health)
		_ = m.places.Ask(ctx, at) // what counts is whether it answers
		seen := m.sighted(g.ev.At[id], at)
		seen.Asked = true
		if seen.Silence != nil {
			m.log.Info("a host does not answer; choosing another place", slog.String("place", id))
		}
		g.ev.At[id] = seen
	case lacks.Room != nil:
		id := lacks.Room.ID()
		seen := g.ev.At[id]
		told, err := m.places.Capacity(ctx, m.placeOfCandidate(lacks.Room))
		if err != nil { // unknown is not unlimited: the create itself finds out
			m.log.Info("the place did not say how full it is", slog.String("place", id), slog.Any("error", err))
		}
		seen.Room = &told
		g.ev.At[id] = seen
	default:
		var at []place.Address
		for _, c := range lacks.Facts {
			at = append(at, m.placeOfCandidate(c))
			g.ev.Probed = g.ev.Probed || !g.ev.At[c.ID()].Stale
		}
		for i, found := range probeAll(ctx, at, m.probeAgain) {
			g.probed[at[i]] = found
		}
		g.lookAround(ctx)
	}
}

// lookAround fills in what is known about each candidate's place.
func (g *gathering) lookAround(ctx context.Context) {
	m, policy := g.m, g.asked.Resolved.Policy
	q := route.Query{Policy: route.Policy{Extension: policy.Extension, Strategy: policy.Strategy, Fallback: policy.Fallback}}
	from := g.ev.Snapshot
	if from != nil {
		q.Origin = &route.Origin{Binding: from.Extension, Host: cmp.Or(from.HostRef, from.Host)}
	}
	if s := g.ev.Source; s != nil {
		q.Origin = &route.Origin{Binding: s.Extension}
	}
	for _, c := range plan.Candidates(m.catalog, g.ev.Hosts, len(g.asked.Request.Hosts) > 0) {
		b, seen := m.catalog.Bindings[c.Index], g.ev.At[c.ID()]
		seen.Unconfigured = !m.places.Configured(b)
		if c.Unavailable == nil {
			if g.ev.Create && (!seen.Unconfigured || q.Pins(c.Binding)) {
				moves := from != nil && from.Arch != "" && slices.Contains(c.Portable, extensions.SnapshotKind(from.Kind)) && !q.Origin.Holds(&c)
				seen = g.withFacts(ctx, seen, &c, g.asked.Machine || moves)
			}
			if c.Host != nil {
				seen.Narrowed = m.narrowed(&c)
			}
		}
		_, seen.Missing = m.places.CredentialsOf(b)
		seen.Latency = route.Latency{CreateToReady: b.CreateToReady}
		if g.ev.Create {
			seen = m.sighted(seen, m.placeOfCandidate(&c))
			if g.asked.Resolved.Policy.Strategy == profile.StrategyLowestLatency {
				seen.Latency = m.latency(ctx, &c, seen.Latency)
			}
		}
		g.ev.At[c.ID()] = seen
	}
}

// withFacts adds what is known about a candidate's place: what its last probe found, this run's or the
// recorded one. If it depends on the kind of machine, it probes a host that nobody has registered, or what runs
// sandboxes for this machine, once per request; that host stays unregistered.
func (g *gathering) withFacts(ctx context.Context, seen plan.Seen, c *route.Candidate, depends bool) plan.Seen {
	at := g.m.placeOfCandidate(c)
	kept, due := g.m.recordedFacts(ctx, at)
	found, tried := g.probed[at]
	depends = depends && c.Place != extensions.PlaceAccount && !c.Native && slices.Contains(c.Powers, extensions.PowerProbe)
	if !tried && kept == nil && !due && depends {
		found, tried = g.m.probe(ctx, at), true
		g.probed[at] = found
	}
	seen.Facts, seen.Recorded, seen.Stale, seen.Unseen = kept, kept != nil, due && !tried, nil
	if found.facts != nil {
		seen.Facts = found.facts
	}
	if seen.Facts == nil && depends {
		seen.Unseen = found.err
	}
	return seen
}
