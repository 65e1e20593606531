package place

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// sightingAge is how long it counts that a place answered, or did not.
const sightingAge = time.Minute

// Sighting is how the last call to a place went. A place that did not answer is
// unreachable, not absent.
type Sighting struct {
	At  time.Time
	Err error // nil: it answered
}

// Sighted is what was found a moment ago; ok is false where nobody looked.
func (p *Places) Sighted(at Address) (s Sighting, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok = p.seen[at]
	age := p.Now().Sub(s.At)
	return s, ok && age >= 0 && age < sightingAge
}

// Answered takes note of how a call to a place went. An error of another kind
// is an answer, unless it is about us.
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
	p.seen[at] = Sighting{p.Now(), err}
}

// Ask asks a place for all it holds, once for all who want to know whether it
// is there; Sighted tells.
func (p *Places) Ask(ctx context.Context, at Address) {
	_, _ = flight.Do(ctx, p.Flights, "ask\x00"+at.key(), func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, timeoutHealth)
		defer cancel()
		b, err := p.Open(ctx, at)
		if err == nil {
			_, err = b.list(ctx, call{op: "status", timeout: timeoutHealth, once: true})
		}
		if ctx.Err() != nil && extensions.IsKind(err, extensions.KindTimeout) {
			err = extensions.Errorf(extensions.KindUnreachable, "no answer within %s", timeoutHealth)
		}
		p.Answered(at, err)
		return struct{}{}, nil
	})
}
