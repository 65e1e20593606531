package place

import (
	"context"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
)

const (
	// gapMost limits the pause between two calls that a place's wish spaces: a wish to wait long says when a
	// period ends, not how many calls fit into the next.
	gapMost = 1100 * time.Millisecond
	// paceAge is how long a place that asked for fewer calls is spared.
	paceAge = time.Minute
)

// pacer lets calls of one kind at one place follow each other once the place asked for fewer: all who wait
// go in the order in which they came, none before the time that the place named.
type pacer struct {
	mu     sync.Mutex
	queues map[string]*queue
}

type queue struct {
	turn chan struct{} // held by the one who goes next
	gate time.Time     // nobody goes before
	gap  time.Duration
	last time.Time // of the place's wishes
}

// slow notes that the place wants no call of the kind before wait has passed.
func (p *pacer) slow(key string, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[key]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		if p.queues == nil {
			p.queues = map[string]*queue{}
		}
		p.queues[key] = q
	}
	q.last, q.gap = time.Now(), min(q.gap+wait, gapMost) // it may have named the rest of a period only
	if gate := q.last.Add(wait); gate.After(q.gate) {
		q.gate = gate
	}
}

// wait returns when the caller may go. It fails with ctx.
func (p *pacer) wait(ctx context.Context, key string) error {
	q := p.queueOf(key)
	if q == nil {
		return nil
	}
	select {
	case q.turn <- struct{}{}: // those who wait for a channel get it in their order
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		rest := p.rest(q)
		if rest <= 0 {
			return nil
		}
		if err := flight.Sleep(ctx, rest); err != nil {
			return err
		}
	}
}

// queueOf returns the queue of a place that asked for fewer calls; nil if there is none.
func (p *pacer) queueOf(key string) *queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[key]
	if q != nil && len(q.turn) == 0 && time.Since(q.last) > paceAge {
		delete(p.queues, key)
		return nil
	}
	return q
}

// rest returns how long the gate stays shut. If it is open, it shuts it behind the caller.
func (p *pacer) rest(q *queue) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if rest := q.gate.Sub(now); rest > 0 {
		return rest
	}
	q.gate = now.Add(q.gap)
	return 0
}
