package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// errSlow is the cause of a dial that we ended ourselves.
var errSlow = errors.New("no answer in time")

// patience ends a dial by closing its first socket: at once when the caller
// gives up, and when the host has been silent for longer than a step may take.
type patience struct {
	ctx    context.Context // ends with the dial
	cancel context.CancelCauseFunc
	unhook func() bool

	mu    sync.Mutex
	timer *time.Timer
	limit time.Duration
	base  net.Conn
}

func newPatience(ctx context.Context) *patience {
	p := &patience{}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.unhook = context.AfterFunc(p.ctx, p.cut)
	return p
}

// step gives the host limit from now on.
func (p *patience) step(limit time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.limit = limit
	p.timer = time.AfterFunc(limit, func() {
		p.cancel(fmt.Errorf("%w (%s)", errSlow, limit))
	})
}

// aside stops the host's clock while we wait for somebody else, a person at an
// agent or a credential command, for at most most. The result starts it again.
func (p *patience) aside(most time.Duration) (resume func()) {
	p.mu.Lock()
	limit := p.limit
	p.mu.Unlock()
	p.step(most)
	return func() { p.step(limit) }
}

// hold names the socket whose end is the end of all.
func (p *patience) hold(conn net.Conn) {
	p.mu.Lock()
	p.base = conn
	p.mu.Unlock()
	if p.ctx.Err() != nil { // it was over before there was a socket
		p.cut()
	}
}

func (p *patience) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.base != nil {
		_ = p.base.Close()
	}
}

// release stops the clocks; it reports false if they had run out.
func (p *patience) release() bool {
	p.mu.Lock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	inTime := p.unhook() && p.ctx.Err() == nil
	p.cancel(nil)
	return inTime
}

// over reports whether the dial was ended by us or by the caller.
func (p *patience) over() bool { return p.ctx.Err() != nil }

// failure says why the dial of what was ended.
func (p *patience) failure(what string) *extensions.Error {
	cause := context.Cause(p.ctx)
	switch {
	case errors.Is(cause, errSlow):
		return extensions.Errorf(extensions.KindUnreachable, "%s does not answer: %w", what, cause).
			WithRemedy("check that the host is up, its sshd answers, and no firewall drops the packets")
	case errors.Is(cause, context.DeadlineExceeded):
		return extensions.Errorf(extensions.KindTimeout, "time ran out while connecting to %s: %w", what, cause)
	}
	return extensions.Errorf(extensions.KindInterrupted, "connecting to %s was given up: %w", what, cause)
}
