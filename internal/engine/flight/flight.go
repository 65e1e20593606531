// Package flight shares work among its callers: it runs once for all of them, independent of any one
// caller's cancellation, until the group is closed.
package flight

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ErrClosed is returned by a closed group. It is KindInternal.
var ErrClosed = extensions.Errorf(extensions.KindInternal, "the engine is closed")

// Group tracks the work under way. The zero value is ready to use.
type Group struct {
	mu      sync.Mutex
	running map[int]context.CancelFunc
	next    int
	closed  bool
	idle    sync.WaitGroup
	once    singleflight.Group
}

// Do runs f and returns its result; concurrent callers with the same key share one run. f gets the values
// of its first caller's context, but not its cancellation. If ctx ends first, Do returns its error and f
// runs on for the others. After Close, Do returns ErrClosed.
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

// begin returns the context of one run; done must be called.
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

// Close cancels the running work and waits for it.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	for _, cancel := range g.running {
		cancel()
	}
	g.mu.Unlock()
	g.idle.Wait()
}

// Sleep waits for d. If ctx ends first, it returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
