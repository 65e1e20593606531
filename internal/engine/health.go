package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// healthAge is how long it counts that a place answered, or did not.
const healthAge = time.Minute

// timeoutHealth bounds the wait for a place's answer where others are left.
const timeoutHealth = 20 * time.Second

// health remembers which places answered when they were last asked. A place
// that did not is unreachable, not absent: it stays a candidate, is refused
// with what it failed by, and is asked again a moment later.
type health struct {
	mu     sync.Mutex
	places map[place]sighting
	flight singleflight.Group
}

type sighting struct {
	at  time.Time
	err error // nil: it answered
}

func (e *Engine) placeOfCandidate(c *route.Candidate) place {
	p := place{binding: c.Binding, account: e.account}
	if c.Host != nil {
		p.host = c.Host.Ref()
	}
	return p
}

// answered takes note of how a call to a place went. An error of another kind
// is an answer, unless it is about us.
func (e *Engine) answered(p place, err error) {
	switch extensions.KindOf(err) {
	case extensions.KindInternal, extensions.KindTimeout, extensions.KindIndeterminate, extensions.KindInterrupted:
		return
	case extensions.KindUnreachable:
	default:
		err = nil
	}
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	if e.health.places == nil {
		e.health.places = map[place]sighting{}
	}
	e.health.places[p] = sighting{e.clock(), err}
}

// sighted is what was found a moment ago; ok is false where nobody looked.
func (e *Engine) sighted(p place) (s sighting, ok bool) {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	s, ok = e.health.places[p]
	age := e.clock().Sub(s.at)
	return s, ok && age >= 0 && age < healthAge
}

// judgeHealth refuses a place that did not answer a moment ago.
func (e *Engine) judgeHealth(p *prepared, c *route.Candidate, how preparation) {
	if c.Unavailable != nil || !how.binding || how.lastResort {
		return
	}
	s, ok := e.sighted(e.placeOfCandidate(c))
	if !ok || s.err == nil {
		return
	}
	help := extensions.RemedyOf(s.err)
	if help != "" {
		help += "; "
	}
	c.Unavailable = &route.Unavailable{Rule: route.RuleUnreachable,
		Reason: fmt.Sprintf("it could not be reached at %s: %s", s.at.UTC().Format(time.RFC3339), extensions.Clean(s.err.Error(), 300)),
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
	if _, known := e.sighted(at); known {
		return false // it answered, or it would have been refused
	}
	e.lookAt(ctx, at)
	s, known := e.sighted(at)
	if !known || s.err == nil {
		return false
	}
	e.log.Info("a host does not answer; another place is chosen", slog.String("place", d.Chosen.ID()))
	return true
}

// lookAt asks a place for all it holds, once for all who want to know.
func (e *Engine) lookAt(ctx context.Context, at place) {
	ch := e.health.flight.DoChan(at.binding+"\x00"+at.account+"\x00"+at.host, func() (any, error) {
		ctx, done, err := e.life.share(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		ctx, cancel := context.WithTimeout(ctx, timeoutHealth)
		defer cancel()
		b, err := e.backend(ctx, at)
		if err == nil {
			var all []extensions.Observation
			epoch := b.now()
			err = e.invoke(ctx, call{op: "status", binding: at.binding, timeout: timeoutHealth, once: true}, func(ctx context.Context) (err error) {
				all, err = b.Status(ctx, nil)
				return err
			})
			if err == nil {
				b.keep(epoch, all, e.clock())
			}
		}
		if ctx.Err() != nil && extensions.IsKind(err, extensions.KindTimeout) {
			err = extensions.Errorf(extensions.KindUnreachable, "no answer within %s", timeoutHealth)
		}
		e.answered(at, err)
		return nil, nil
	})
	select {
	case <-ctx.Done():
	case <-ch:
	}
}
