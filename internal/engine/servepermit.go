package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/tenant"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// permitted holds a client of the served ledger l to this engine's catalog: to
// the policies of the client's account, and to who pays where, by routing's own
// rules. A refusal is *ledger.Forbidden.
func (e *Engine) permitted(ctx context.Context, l ledger.Ledger, account string, a tenant.Asked) error {
	b, err := e.catalog.Named(a.Extension)
	if err != nil {
		return err
	}
	spec, req, err := wished(a)
	if err != nil {
		return err
	}
	c, err := e.servedCandidate(ctx, l, account, b, a)
	if err != nil {
		return err
	}
	if !selfHosted(&c) {
		q, err := e.servedQuote(b, spec, req, a.TTL)
		if err == nil {
			err = e.freshPrice(&c, q)
		}
		if err != nil {
			return err
		}
		paid := credit{requested: req.Billing}
		if req.Billing == "" {
			balances, err := l.Balances(ctx, ledger.StreamOf(account))
			if err != nil {
				return err
			}
			paid.granted = grantedIn(balances)
		}
		c.Credit = paid.pays(&c, q.Currency)
		bounded(&c, q)
	}
	return forbidden(account, c.ID(), route.Forbidden(route.Query{Spec: spec.Spec, Billing: req.Billing, Permission: e.catalog.Permission(account)}, c))
}

// forbidden is the error of refusals; nil where there are none.
func forbidden(account, place string, all []route.Refusal) error {
	if len(all) == 0 {
		return nil
	}
	kind := extensions.KindUnsupported
	if all[0].Stage == route.StagePermission {
		kind = extensions.KindUnauthorized
	}
	var reasons, helps []string
	for _, r := range all {
		reasons = append(reasons, r.Reason)
		if r.Help != "" && !slices.Contains(helps, r.Help) {
			helps = append(helps, r.Help)
		}
	}
	return &extensions.Error{Kind: kind, Op: "ledger", Remedy: strings.Join(helps, "; "),
		Err: &ledger.Forbidden{Account: account, Place: place, Rule: string(all[0].Rule), Reason: strings.Join(reasons, "; ")}}
}

// servedCandidate is the place that a client chose, as this engine's catalog
// and the ledger know it. What a host is like is its owner's word.
func (e *Engine) servedCandidate(ctx context.Context, l ledger.Ledger, account string, b catalog.Binding, a tenant.Asked) (route.Candidate, error) {
	var h *extensions.Host
	switch {
	case a.HostRef != "":
		parsed, err := extensions.ParseHostRef(a.HostRef)
		if err != nil {
			return route.Candidate{}, err
		}
		h = &parsed
	case a.Host != "":
		h = &extensions.Host{Name: a.Host}
	}
	c := candidate(b, h, 0)
	n, ok := e.places.Narrower(b)
	if h == nil || !ok || c.Unavailable != nil {
		return c, nil
	}
	facts := factsOf(ctx, l, account, *h)
	if facts != nil && len(facts.Unfit) > 0 {
		return c, nil // what it can do is not the matter here
	}
	ceiling := c.Capabilities
	c.Capabilities, c.Narrowed = n.OnHost(ceiling, *h, facts)
	c.Ceiling = &ceiling
	return c, nil
}

// wished reads what a client asked for.
func wished(a tenant.Asked) (spec recorded, req Request, err error) {
	for _, part := range []struct {
		from json.RawMessage
		into any
	}{{a.Spec, &spec}, {a.Request, &req}} {
		if len(part.from) == 0 {
			continue
		}
		if err := json.Unmarshal(part.from, part.into); err != nil {
			return spec, req, extensions.Errorf(extensions.KindInvalid, "what is asked for cannot be read: %w", err)
		}
	}
	if req.Billing != "" && req.Billing != route.BillingPlatform && req.Billing != route.BillingBYOK {
		return spec, req, extensions.Errorf(extensions.KindInvalid, "nobody pays as %q", extensions.Clean(req.Billing, 40)).At("billing").
			WithRemedy("set billing to platform or byok, or leave it out")
	}
	return spec, req, nil
}

// servedQuote is this engine's price for a client. A binding that holds a key
// says itself who pays, whatever the request says.
func (e *Engine) servedQuote(b catalog.Binding, spec recorded, req Request, ttl time.Duration) (meter.Quote, error) {
	byok := cmp.Or(b.Billing, req.Billing) == route.BillingBYOK
	c := candidate(b, nil, 0)
	return meter.NewQuote(e.quoteInput(b, nil, c.PlacedIn(spec.Demanded), spec.Resources, ttl, byok))
}
