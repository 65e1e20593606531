package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// demandsMachine reports that the profile asks for a kind of machine.
func demandsMachine(p *prepared) bool {
	r := p.resolved.Spec.Requires
	return len(r.OS)+len(r.Arch) > 0
}

// factsFor are the recorded facts of c's host. Where there are none and the
// request depends on them the host is looked at, once in a create, and stays
// unregistered; one that cannot be looked at is unavailable then.
func (e *Engine) factsFor(ctx context.Context, p *prepared, c *route.Candidate) (facts *extensions.HostFacts, recorded bool) {
	facts = e.recordedFacts(ctx, *c.Host)
	if facts != nil || !demandsMachine(p) || c.Place != extensions.PlaceHost {
		return facts, facts != nil
	}
	ref := c.Host.Ref()
	if found, ok := p.seen[ref]; ok {
		return &found, false
	}
	v, err := e.GetHost(ctx, *c.Host)
	if err != nil {
		c.Unavailable = &route.Unavailable{Rule: route.RuleHostUnfit,
			Reason: fmt.Sprintf("the profile requires a kind of machine, and the host %q could not be looked at: %s", c.Host.Name, extensions.Clean(err.Error(), 300)),
			Help:   cmp.Or(extensions.RemedyOf(err), "see that it can be reached")}
		return nil, false
	}
	if p.seen == nil {
		p.seen = map[string]extensions.HostFacts{}
	}
	p.seen[ref] = v.Facts
	return &v.Facts, false
}
