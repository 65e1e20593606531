package box

import (
	"sync"
	"time"
)

// grain is how often what is due in real time happens.
const grain = 100 * time.Millisecond

// Clock is the machine's time and what was added to it.
type Clock struct {
	mu    sync.Mutex
	added time.Duration
	stood time.Time // zero = it goes
	tick  func()    // lets what is due happen
}

// NewClock returns a clock that calls tick, from one goroutine at a time or several, every 100 ms and after
// each Advance. stop ends that.
func NewClock(tick func()) (c *Clock, stop func()) {
	c = &Clock{tick: tick}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(grain)
		defer every.Stop()
		for {
			select {
			case <-done:
				return
			case <-every.C:
				c.tick()
			}
		}
	}()
	return c, sync.OnceFunc(func() { close(done); <-ended })
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stood.IsZero() {
		return c.stood.Add(c.added)
	}
	return time.Now().Add(c.added)
}

// Stand stops it for good: from now on only Advance moves it.
func (c *Clock) Stand() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stood.IsZero() {
		c.stood = time.Now()
	}
}

// Advance lets d pass, with all that happens meanwhile.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	c.added += d
	c.mu.Unlock()
	c.tick()
}
