package engine

import (
	"context"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// life is what an engine runs for several callers at once: opening a place or
// the ledger, listing a place. Such work outlives any one of its callers and
// ends with the engine.
type life struct {
	mu      sync.Mutex
	running map[int]context.CancelFunc
	next    int
	over    bool
	idle    sync.WaitGroup
}

// share makes a context for shared work out of that of its first caller:
// its values, without its end. done must be called. After end it fails.
func (l *life) share(ctx context.Context) (_ context.Context, done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, nil, errClosed()
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if l.running == nil {
		l.running = map[int]context.CancelFunc{}
	}
	n := l.next
	l.next++
	l.running[n] = cancel
	l.idle.Add(1)
	return ctx, func() {
		l.mu.Lock()
		delete(l.running, n)
		l.mu.Unlock()
		cancel()
		l.idle.Done()
	}, nil
}

// end cancels what runs and waits for it.
func (l *life) end() {
	l.mu.Lock()
	l.over = true
	for _, cancel := range l.running {
		cancel()
	}
	l.mu.Unlock()
	l.idle.Wait()
}

func errClosed() error {
	return extensions.Errorf(extensions.KindInternal, "the engine is closed")
}
