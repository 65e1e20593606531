package book

import (
	"context"
	"sync"
)

// turns allows one operation at a time on a sandbox or snapshot within this engine; the ledger does the same
// between processes. Without it, two operations of one process would take over each other's intent.
type turns struct {
	mu      sync.Mutex
	current map[string]chan struct{} // closed when the turn ends
}

// take waits for id's turn. release may be called more than once.
func (t *turns) take(ctx context.Context, id string) (release func(), err error) {
	for {
		t.mu.Lock()
		before, busy := t.current[id]
		if !busy {
			if t.current == nil {
				t.current = map[string]chan struct{}{}
			}
			over := make(chan struct{})
			t.current[id] = over
			t.mu.Unlock()
			return sync.OnceFunc(func() {
				t.mu.Lock()
				delete(t.current, id)
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

// taken reports whether an operation of this engine on id is under way.
func (t *turns) taken(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, busy := t.current[id]
	return busy
}
