// Package flight runs work that several callers wait for: once for all of
// them, apart from any one caller's cancellation, until its group is closed.
package flight

import (
	"context"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ErrClosed is what a closed group answers. It is KindInternal.
var ErrClosed = extensions.Errorf(extensions.KindInternal, "the engine is closed")

// Group is the work under way. The zero value is ready for use.
type Group struct {
	mu      sync.Mutex
	running map[int]context.CancelFunc
	next    int
	closed  bool
	idle    sync.WaitGroup
	once    singleflight.Group
}

// Do runs f and returns what it does; callers with the same key share one run.
// f gets the values of its first caller's context, and not its end. When ctx
// ends first, Do returns its error and f runs on for the others. After Close
// it returns ErrClosed.
func Do[T any](ctx context.Context, g *Group, key string, f func(context.Context) (T, error)) (T, error) {
	var zero T
	ch := g.once.DoChan(key, func() (any, error) {
		ctx, done, err := g.begin(ctx)
		if err != nil {
			return zero, err
		}
		defer done()
		return f(ctx)
	})
	select {
	case <-ctx.Done():
		return zero, ctx.Err()
	case r := <-ch:
		if r.Err != nil {
			return zero, r.Err
		}
		return r.Val.(T), nil
	}
}

// begin makes the context of one run; done must be called.
func (g *Group) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if g.running == nil {
		g.running = map[int]context.CancelFunc{}
	}
	n := g.next
	g.next++
	g.running[n] = cancel
	g.idle.Add(1)
	return ctx, func() {
		g.mu.Lock()
		delete(g.running, n)
		g.mu.Unlock()
		cancel()
		g.idle.Done()
	}, nil
}

// Close cancels what runs and waits for it.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	for _, cancel := range g.running {
		cancel()
	}
	g.mu.Unlock()
	g.idle.Wait()
}
