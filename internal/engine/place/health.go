package place

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// sightingAge is how long a sighting counts.
const sightingAge = time.Minute

// Sighting is the outcome of the last call to a place. A place that did not answer is unreachable, not absent.
type Sighting struct {
	At  time.Time
	Err error // nil: it answered
}

// Sighted returns the recent sighting; ok is false if there is none.
func (p *Places) Sighted(at Address) (s Sighting, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok = p.seen[at.key()]
	age := p.Clock().Sub(s.At)
	return s, ok && age >= 0 && age < sightingAge
}

// Answered records the outcome of a call to a place. It ignores errors that say nothing about the place; any other
// error except Unreachable counts as an answer.
func (p *Places) Answered(at Address, err error) {
	switch extensions.KindOf(err) {
	case extensions.KindInternal, extensions.KindTimeout, extensions.KindIndeterminate, extensions.KindInterrupted:
		return
	case extensions.KindUnreachable:
	default:
		err = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[at.key()] = Sighting{p.Clock(), err}
}

// Ask lists a place's sandboxes once for all callers that need its health, and returns the error of that call.
// Sighted reports later whether the place answered at all.
func (p *Places) Ask(ctx context.Context, at Address) error {
	_, err := flight.Do(ctx, p.Flights, "ask\x00"+at.key(), func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, timeoutHealth)
		defer cancel()
		b, err := p.Open(ctx, at)
		if err == nil {
			_, err = b.list(ctx, call{op: "status", timeout: timeoutHealth})
		}
		if ctx.Err() != nil && extensions.IsKind(err, extensions.KindTimeout) {
			err = extensions.Errorf(extensions.KindUnreachable, "no answer within %s", timeoutHealth)
		}
		p.Answered(at, err)
		return struct{}{}, err
	})
	return err
}
