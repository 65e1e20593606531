package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// query gathers what routing depends on: every binding of the catalog on
// every place it could use, priced.
func (e *Engine) query(ctx context.Context, p *prepared, how preparation) (route.Query, error) {
	r := p.resolved
	q := route.Query{
		Spec: r.Spec, Options: r.OptionsByExtension, Prefer: r.Placement.Prefer, Fallback: r.Placement.Fallback,
		DesiredMode: p.req.DesiredMode, Billing: p.req.Billing, Permission: e.catalog.Permission(e.accountOf(p.req)),
		Policy: route.Policy{Extension: r.Policy.Extension, Strategy: r.Policy.Strategy, Fallback: r.Policy.Fallback,
			RequireIsolation: r.Policy.RequireIsolation, Region: r.Policy.Region, AuthMode: r.Policy.AuthMode},
	}
	if r.Policy.MaxCostPerHour != "" {
		m, err := meter.ParseMoney(r.Policy.MaxCostPerHour)
		if err != nil {
			return q, err
		}
		q.Policy.MaxCostPerHour = &m
	}
	if p.snapshot != nil {
		q.Origin = &route.Origin{Binding: p.snapshot.Extension, Host: p.snapshot.Host}
	}
	hosts, err := e.placement(ctx, p)
	if err != nil {
		return q, err
	}
	if len(p.req.Hosts) > 0 {
		for _, h := range hosts {
			q.Hosts = append(q.Hosts, h.Name)
		}
	}
	held := e.occupied(ctx, p, how)
	credit := e.creditOf(ctx, p, how)
	for i, b := range e.catalog.Bindings {
		for _, h := range hostsFor(b, hosts, len(p.req.Hosts) > 0) {
			c := candidate(b, h, i)
			if h != nil {
				e.narrow(ctx, p, b, &c, how)
			}
			if err := e.price(ctx, p, b, &c, how); err != nil {
				return q, err
			}
			c.Credit = credit.pays(&c, p.quotes[c.ID()].Currency)
			e.judgeCredentials(p, b, &c, how)
			e.judgeHealth(p, &c, how)
			c.Room = held.room(b, &c, p.told[c.ID()])
			c.Latency = e.latency(ctx, p, b, &c, how)
			q.Candidates = append(q.Candidates, c)
		}
	}
	return q, nil
}

// placement lists the hosts that candidates are made of: those the request
// insists on, else those of the profile's placement that the ledger knows.
func (e *Engine) placement(ctx context.Context, p *prepared) ([]extensions.Host, error) {
	var out []extensions.Host
	seen := map[string]bool{}
	add := func(h extensions.Host) error {
		if seen[h.Name] {
			return extensions.Invalid("hosts: %q is named twice", "name each host once", h.Name)
		}
		seen[h.Name] = true
		out = append(out, h)
		return nil
	}
	for _, ref := range p.req.Hosts {
		var h extensions.Host
		var err error
		if strings.HasPrefix(strings.TrimSpace(ref), "{") {
			h, err = extensions.ParseHostRef(ref)
		} else {
			p.fromLedger = true
			h, err = e.LookupHost(ctx, ref)
		}
		if err == nil {
			err = e.CheckHost(h)
		}
		if err == nil {
			err = add(h)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(p.req.Hosts) > 0 {
		return out, nil
	}
	for _, name := range slices.Concat(p.resolved.Placement.Prefer, p.resolved.Placement.Fallback) {
		p.fromLedger = true
		h, err := e.LookupHost(ctx, name)
		switch {
		case extensions.IsKind(err, extensions.KindNotFound):
			continue // routing tells about it
		case err != nil:
			return nil, err
		case seen[h.Name]:
			continue
		}
		if err := add(h); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// hostsFor pairs a binding with its places; nil stands for an account, or for
// this machine without a name. A place that cannot fit is kept: its refusal
// is worth telling.
func hostsFor(b catalog.Binding, hosts []extensions.Host, insisted bool) []*extensions.Host {
	if b.Descriptor.Place == extensions.PlaceAccount || len(hosts) == 0 {
		return []*extensions.Host{nil}
	}
	var out []*extensions.Host
	for _, h := range hosts {
		out = append(out, &h)
	}
	if b.Descriptor.Place == extensions.PlaceMachine && !insisted && !slices.ContainsFunc(hosts, func(h extensions.Host) bool { return h.Local }) {
		out = append(out, nil)
	}
	return out
}

func candidate(b catalog.Binding, h *extensions.Host, index int) route.Candidate {
	c := route.Candidate{
		Binding: b.ID, Title: b.Title, Handler: b.Handler, Place: b.Descriptor.Place, Host: h,
		Capabilities: b.Capabilities, Provides: b.Provides, Powers: b.Descriptor.Powers, Find: b.Descriptor.Find,
		Options: b.Descriptor.Options, Region: b.Region, Priority: b.Priority, Index: index,
		NamedOnly: b.Descriptor.NamedOnly, Billing: b.Billing,
	}
	switch place := b.Descriptor.Place; {
	case h == nil && place == extensions.PlaceHost:
		c.Unavailable = &route.Unavailable{Rule: route.RuleHostUnfit, Reason: "it needs a host and none is given",
			Help: "register one with sandboxer_host and pass its ref in hosts"}
	case h != nil && place == extensions.PlaceMachine && !h.Local:
		c.Unavailable = &route.Unavailable{Rule: route.RuleHostUnfit, Reason: fmt.Sprintf("it runs on this machine, and host %q is another", h.Name),
			Help: "use a sandboxer_host with local = true, or a profile for SSH hosts"}
	case h != nil && place == extensions.PlaceHost && h.Local:
		c.Unavailable = &route.Unavailable{Rule: route.RuleHostUnfit, Reason: fmt.Sprintf("it needs an SSH host, and %q is this machine", h.Name),
			Help: "give the host an ssh block"}
	}
	return c
}

// narrow takes from c what its host cannot give. A plan judges by the host's
// own arguments; what probing found counts when it is to be made.
func (e *Engine) narrow(ctx context.Context, p *prepared, b catalog.Binding, c *route.Candidate, how preparation) {
	n, ok := e.places.Narrower(b)
	if !ok || c.Unavailable != nil {
		return
	}
	var facts *extensions.HostFacts
	if how.binding {
		facts = e.recordedFacts(ctx, *c.Host)
	}
	if facts != nil && len(facts.Unfit) > 0 {
		c.Unavailable = &route.Unavailable{Rule: route.RuleHostUnfit, Reason: fmt.Sprintf("nothing could run on the host %q when it was looked at: %s", c.Host.Name, strings.Join(facts.Unfit, "; ")),
			Help: fmt.Sprintf("mend that on the host and run again; `sandboxer host check %s` looks at it", c.Host.Name)}
		p.judged = append(p.judged, *c.Host)
		return
	}
	ceiling := c.Capabilities
	c.Capabilities, c.Narrowed = n.OnHost(ceiling, *c.Host, facts)
	c.Ceiling = &ceiling
	if facts != nil && len(c.Narrowed) > 0 {
		p.judged = append(p.judged, *c.Host)
	}
}

// probeAgain probes the hosts whose recorded facts left no place to choose:
// their owner may have mended them since. Each is looked at once by an engine,
// and what cannot be looked at stays as recorded. It reports whether anything
// was found out.
func (e *Engine) probeAgain(ctx context.Context, p *prepared) bool {
	found := false
	for _, h := range p.judged {
		once, _ := e.looked.LoadOrStore(h.Ref(), &sync.Once{})
		once.(*sync.Once).Do(func() {
			if _, err := e.RegisterHost(ctx, h, ""); err != nil {
				e.log.Info("the host could not be looked at again", slog.String("host", h.Name), slog.Any("error", err))
			}
		})
		found = true // by this caller or by the one it waited for
	}
	p.judged = nil
	return found
}

// recordedFacts are those of exactly this host; nil where none were found yet.
func (e *Engine) recordedFacts(ctx context.Context, h extensions.Host) *extensions.HostFacts {
	l, err := e.reader(ctx)
	if err != nil {
		return nil // a create tells of it when it writes
	}
	row, err := l.Host(ctx, e.account, h.Name)
	if err != nil || row.Ref != h.Ref() {
		return nil
	}
	return &row.Facts
}

func (e *Engine) price(ctx context.Context, p *prepared, b catalog.Binding, c *route.Candidate, how preparation) error {
	in := e.quoteInput(b, c.Host, c.PlacedIn(p.resolved.Policy.Region), p.resolved.Spec.Resources, time.Duration(p.resolved.Spec.TTL), c.PaidAs(p.req.Billing) == route.BillingBYOK)
	in.Expected, in.History = how.quote.Expected, e.lifetimes(ctx, p, b.ID, how)
	q, err := meter.NewQuote(in)
	if err != nil {
		return p.notPriced(c, e.pricedBy(c), in.BYOK || selfHosted(c), err)
	}
	p.quotes[c.ID()] = q
	c.Price = route.Price{Confidence: q.Confidence, Quote: q.Digest}
	bounded(c, q)
	if m, ok := q.In(q.Hourly); ok {
		c.Price.Hourly = &m
	}
	if b.Shadow != nil {
		m, err := b.Shadow.Hourly(q.Sizes)
		if err != nil {
			return p.notPriced(c, "its shadow_price", q.Memo, err)
		}
		c.Price.Shadow = &m
	}
	return nil
}

// quoteInput is what the catalog says of a binding's prices.
func (e *Engine) quoteInput(b catalog.Binding, host *extensions.Host, region string, r extensions.Resources, ttl time.Duration, byok bool) meter.QuoteInput {
	return meter.QuoteInput{Extension: b.ID, PricingModel: b.Capabilities.PricingModel, BYOK: byok, Region: region,
		Book: e.catalog.Book(b.ID), PerHour: b.PerHour, PerHourSource: b.PerHourSource, PerHourAsOf: b.PerHourAsOf, Host: host, Fee: b.Fee, Resources: r, TTL: ttl}
}

// judgeCredentials refuses a place without its credentials when binding. A
// plan may run where they are not: there it is only told.
func (e *Engine) judgeCredentials(p *prepared, b catalog.Binding, c *route.Candidate, how preparation) {
	if c.Unavailable != nil {
		return
	}
	have := e.places.CredentialsOf(b)
	for _, f := range b.Descriptor.Credentials {
		if _, ok := have[f.Name]; ok || !f.Required {
			continue
		}
		help := fmt.Sprintf("set credentials[%q].%s in the provider block", b.ID, f.Name)
		if f.Env != "" {
			help += " or the environment variable " + f.Env
		}
		reason := fmt.Sprintf("its credential %s is not set", f.Name)
		if how.binding {
			c.Unavailable = &route.Unavailable{Rule: route.RuleCredentials, Reason: reason, Help: help}
			return
		}
		p.notices = append(p.notices, Notice{Summary: b.ID + " could not be used from here", Detail: reason + ": " + help})
	}
}

// selfHosted reports a place of the user's own: nobody sends a bill.
func selfHosted(c *route.Candidate) bool {
	return c.Capabilities.PricingModel == extensions.PricingSelfHosted
}

// ownPlace reports that nobody sends a bill for what runs at a binding.
func (e *Engine) ownPlace(binding string) bool {
	b, err := e.catalog.Named(binding)
	return err == nil && b.Capabilities.PricingModel == extensions.PricingSelfHosted
}

// metered reports that somebody may send a bill: the place of choice, or one
// that may be tried after it.
func (p *prepared) metered() bool {
	for _, c := range append([]*route.Candidate{p.decision.Chosen}, p.decision.Fallbacks...) {
		if c != nil && !selfHosted(c) {
			return true
		}
	}
	return false
}
