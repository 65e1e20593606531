package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (e *Engine) placeOfCandidate(c *route.Candidate) place.Address {
	p := place.Address{Binding: c.Binding, Account: e.account}
	if c.Host != nil {
		p.Host = c.Host.Ref()
	}
	return p
}

// judgeHealth refuses a place that did not answer a moment ago.
func (e *Engine) judgeHealth(p *prepared, c *route.Candidate, how preparation) {
	if c.Unavailable != nil || !how.binding || how.lastResort {
		return
	}
	s, ok := e.places.Sighted(e.placeOfCandidate(c))
	if !ok || s.Err == nil {
		return
	}
	help := extensions.RemedyOf(s.Err)
	if help != "" {
		help += "; "
	}
	c.Unavailable = &route.Unavailable{Rule: route.RuleUnreachable,
		Reason: fmt.Sprintf("it could not be reached at %s: %s", s.At.UTC().Format(time.RFC3339), extensions.Clean(s.Err.Error(), 300)),
		Help:   help + "it is asked again a minute after that"}
	p.silent = true
}

// chooseAnswering decides, and asks the first choice of a create what only the
// place knows: whether it is there, and how full it is. Where all that is left
// was silent a moment ago, it is tried all the same.
func (e *Engine) chooseAnswering(ctx context.Context, p *prepared, how preparation) (route.Query, error) {
	for {
		p.silent = false
		query, err := e.query(ctx, p, how)
		if err != nil {
			return query, err
		}
		p.decision = route.Select(query)
		switch d := p.decision; {
		case d.Chosen == nil && p.silent:
			how.lastResort = true
			continue
		case d.Chosen == nil || !how.binding || how.lastResort:
			return query, nil
		}
		if !e.isSilent(ctx, p.decision) && !e.askRoom(ctx, p, p.decision.Chosen) {
			return query, nil
		}
	}
}

// isSilent asks the first choice whether it is there, where that is a host and
// others are left: a host that is down then costs one question, and not the
// create.
func (e *Engine) isSilent(ctx context.Context, d route.Decision) bool {
	if len(d.Fallbacks) == 0 || d.Chosen.Place != extensions.PlaceHost {
		return false
	}
	at := e.placeOfCandidate(d.Chosen)
	if _, known := e.places.Sighted(at); known {
		return false // it answered, or it would have been refused
	}
	e.places.Ask(ctx, at)
	s, known := e.places.Sighted(at)
	if !known || s.Err == nil {
		return false
	}
	e.log.Info("a host does not answer; another place is chosen", slog.String("place", d.Chosen.ID()))
	return true
}
