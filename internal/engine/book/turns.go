package book

import (
	"context"
	"sync"
)

// turns lets one operation at a time work on a sandbox or snapshot within
// this engine; the ledger does the same between processes. Without it, two
// operations of one process would take each other's intent over.
type turns struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the turn ends
}

// take waits for id's turn. release may be called more than once.
func (t *turns) take(ctx context.Context, id string) (release func(), err error) {
	for {
		t.mu.Lock()
		before, busy := t.held[id]
		if !busy {
			if t.held == nil {
				t.held = map[string]chan struct{}{}
			}
			over := make(chan struct{})
			t.held[id] = over
			t.mu.Unlock()
			return sync.OnceFunc(func() {
				t.mu.Lock()
				delete(t.held, id)
				t.mu.Unlock()
				close(over)
			}), nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// taken reports that an operation of this engine is under way on id.
func (t *turns) taken(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, busy := t.held[id]
	return busy
}
