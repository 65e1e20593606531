package plan

import (
	"cmp"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Decision is the place and the price of a request, with the reasons.
type Decision struct {
	*Asked
	Evidence Evidence
	Choice   route.Decision
	// Offers are the places that may be tried, in an order fixed before the first attempt; none if every place is
	// ruled out.
	Offers   []*Offer
	Metered  bool             // a vendor may bill at one of Offers
	Ceilings []ledger.Ceiling // that a create counts against
	Route    Route
	Estimate Estimate
	Notices  []notice.Notice

	cat    *catalog.Catalog
	query  route.Query
	quotes map[string]meter.Quote // by candidate id
	again  []*route.Candidate     // their recorded facts removed something
}

// Decide chooses among the places of the catalog. A create gathers the evidence that it still lacks and calls
// Decide again; a plan lacks nothing. The error is for invalid evidence or an invalid catalog; if no place is
// left, [Decision.Refused] says so. If all places left did not answer recently, they are tried anyway.
func Decide(cat *catalog.Catalog, a *Asked, ev Evidence) (*Decision, Lacks, error) {
	d := &Decision{Asked: a, Evidence: ev, cat: cat}
	silent, err := d.choose(true)
	if err != nil {
		return nil, Lacks{}, err
	}
	lastResort := d.Choice.Chosen == nil && silent
	if lastResort {
		if _, err := d.choose(false); err != nil {
			return nil, Lacks{}, err
		}
	}
	for _, n := range d.Choice.Notices {
		d.Notices = append(d.Notices, notice.Notice{Summary: n})
	}
	d.Route, d.Estimate = routeOf(d.Choice), d.estimate()
	d.noteOrigin()
	d.offer()
	return d, d.lacks(lastResort), nil
}

// choose judges every candidate and selects one. health says that places that recently did not answer are
// refused; silent reports that one was.
func (d *Decision) choose(health bool) (silent bool, err error) {
	d.Notices, d.quotes, d.again = slices.Clone(d.Asked.Notices), map[string]meter.Quote{}, nil
	if d.query, err = d.ask(); err != nil {
		return false, err
	}
	ev := d.Evidence
	pays := credit{requested: d.Request.Billing, granted: ev.Granted}
	for i := range d.query.Candidates {
		c := &d.query.Candidates[i]
		b, seen := d.cat.Bindings[c.Index], ev.At[c.ID()]
		if judgePlace(c, ev.Here, seen, d.Machine) {
			d.again = append(d.again, c)
		}
		if err := d.price(b, c); err != nil {
			return false, err
		}
		c.Credit = pays.pays(c, d.quotes[c.ID()].Currency)
		d.Notices = append(d.Notices, judgeCredentials(c, b.Descriptor, seen, ev.Create)...)
		if health && judgeHealth(c, seen) {
			silent = true
		}
		c.Room, c.Latency = ev.Occupancy.room(b, c, seen.Room), seen.Latency
	}
	d.Choice = route.Select(d.query)
	return silent, nil
}

// ask returns the query without what is known about each place.
func (d *Decision) ask() (route.Query, error) {
	r, ev := d.Resolved, d.Evidence
	if name := d.Request.Extension; name != "" {
		if _, err := d.cat.Named(name); err != nil {
			return route.Query{}, extensions.AtField("extension", err)
		}
	}
	q := route.Query{
		Spec: r.Spec, Options: r.OptionsByExtension, Prefer: r.Placement.Prefer, Fallback: r.Placement.Fallback,
		Runs: d.Request.Runs, DesiredMode: d.Request.DesiredMode, Billing: d.Request.Billing, Permission: d.cat.Permission(ev.Account),
		Policy: route.Policy{Extension: r.Policy.Extension, ByRequest: d.Request.Extension != "",
			Strategy: r.Policy.Strategy, Fallback: r.Policy.Fallback,
			RequireIsolation: r.Policy.RequireIsolation, Region: r.Policy.Region, AuthMode: r.Policy.AuthMode},
	}
	if r.Policy.MaxCostPerHour != "" {
		m, err := meter.ParseMoney(r.Policy.MaxCostPerHour)
		if err != nil {
			return q, err
		}
		q.Policy.MaxCostPerHour = &m
	}
	if s := ev.Snapshot; s != nil {
		q.Origin = d.keeps(*s)
	}
	if s := ev.Source; s != nil {
		q.Origin = &route.Origin{Binding: s.Extension, Host: cmp.Or(s.HostRef, s.Host)}
	}
	if len(d.Request.Hosts) > 0 {
		for _, h := range ev.Hosts {
			q.Hosts = append(q.Hosts, h.Name)
		}
	}
	for _, c := range Candidates(d.cat, ev.Hosts, len(d.Request.Hosts) > 0) {
		if ev.At[c.ID()].Unconfigured && !q.Pins(c.Binding) {
			q.Unconfigured = append(q.Unconfigured, c.Binding)
			continue
		}
		q.Candidates = append(q.Candidates, c)
	}
	var err error
	q.Reach, err = reach(d.cat, r.Reachability)
	return q, extensions.AtField("profile", err)
}

// reach looks up how a profile wants its host to be reached.
func reach(cat *catalog.Catalog, want profile.ReachabilityRule) (route.Reach, error) {
	r := route.Reach{TunnelName: want.Tunnel, IdentityName: want.Identity}
	if want.Tunnel != "" {
		t, err := cat.Tunnel(want.Tunnel)
		if err != nil {
			return r, err
		}
		r.Tunnel = &t
	}
	if want.Identity != "" {
		id, err := cat.Identity(want.Identity)
		if err != nil {
			return r, err
		}
		r.Identity = &id
	}
	return r, nil
}

// lacks returns what only the places know. It asks whether the first choice is up if that is a host and
// others are left: a host that is down then costs one question, not the create.
func (d *Decision) lacks(lastResort bool) Lacks {
	ev, chosen := d.Evidence, d.Choice.Chosen
	if !ev.Create {
		return Lacks{}
	}
	if chosen == nil {
		if ev.Probed {
			return Lacks{}
		}
		return Lacks{Facts: d.again}
	}
	seen := ev.At[chosen.ID()]
	switch {
	case lastResort:
		return Lacks{}
	case !seen.Asked && chosen.Place == extensions.PlaceHost && len(d.Choice.Fallbacks) > 0:
		return Lacks{Health: chosen}
	case seen.Stale:
		return Lacks{Facts: []*route.Candidate{chosen}}
	case seen.Room == nil && slices.Contains(chosen.Powers, extensions.PowerCapacity):
		return Lacks{Room: chosen}
	}
	return Lacks{}
}

// Refused returns why nothing can be made: every place is ruled out, or the first choice must not be paid
// for.
func (d *Decision) Refused() error {
	if err := d.Choice.Err(); err != nil {
		return err
	}
	return d.CheckPrice(d.Choice.Chosen, d.Evidence.Now)
}

// Planned returns the decision as an answer. err says why it cannot be carried out; nil = it can.
func (d *Decision) Planned(err error) Planned {
	out := d.Asked.Planned()
	out.Estimate, out.EstimateKnown, out.Notices, out.Route = d.Estimate, !d.Evidence.FromLedger, d.Notices, d.Route
	if c := d.Choice.Chosen; err == nil && d.pinned() {
		out.Extension, out.Pinned = c.Binding, true
		if c.Host != nil {
			out.Host = c.Host.Ref()
		}
	}
	return out
}

// pinned reports that the request itself allows only one place, whatever is added to the catalog.
func (d *Decision) pinned() bool {
	policy := d.Resolved.Policy
	return policy.Extension != "" && len(policy.Fallback) == 0 && len(d.Request.Hosts) <= 1 && !d.Evidence.FromLedger &&
		d.Resolved.Spec.FromSnapshot == nil && d.Request.FromSandbox == ""
}
