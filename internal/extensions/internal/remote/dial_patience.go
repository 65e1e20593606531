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
var errSlow = errors.New("waited")

// silentAgain is when a host that was silent for a whole step may be asked again: no sooner than anybody
// waits for a plan. An immediate failure, such as a refused connection, deserves a quick retry; silence costs
// its full time again each time.
const silentAgain = time.Minute

// stage is what we wait for from a host, and what may delay it.
type stage struct{ what, remedy string }

var (
	stageConnect = stage{"a TCP connection",
		"check that the host is up, that address and port are right, and that no firewall drops the packets"}
	stageThrough = stage{"a connection through the jump host",
		"check the address as seen from the jump host, that the host is up, and that no firewall drops the packets"}
	stageKeys = stage{"an SSH server's greeting and key exchange, after the connection was accepted",
		"check that the port is sshd's, and that sshd is not stopped, stuck or overloaded: `ssh -v` shows how far it gets"}
	stageLogin = stage{"the answer to the login, after its host key was accepted",
		"see what delays sshd on the host: its log, PAM, name resolution (UseDNS), a full disk"}
	stageHere = stage{"somebody on this machine, the agent or the credential command",
		"check what the agent or the credential command waits for"}
)

// patience ends a dial by closing its first socket: at once when the caller gives up, or when the host has
// been silent for longer than a step may take.
type patience struct {
	ctx    context.Context // ends with the dial
	cancel context.CancelCauseFunc
	unhook func() bool

	mu    sync.Mutex
	timer *time.Timer
	limit time.Duration
	stage stage
	base  net.Conn
}

func newPatience(ctx context.Context) *patience {
	p := &patience{}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.unhook = context.AfterFunc(p.ctx, p.cut)
	return p
}

// step gives the host limit, from now on, for a stage.
func (p *patience) step(limit time.Duration, s stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.limit, p.stage = limit, s
	p.timer = time.AfterFunc(limit, func() {
		p.cancel(fmt.Errorf("%w %s", errSlow, limit))
	})
}

// reach notes that the host has reached the next stage within the same step.
func (p *patience) reach(s stage) {
	p.mu.Lock()
	p.stage = s
	p.mu.Unlock()
}

// aside stops the host's clock while we wait for somebody else, a person at an agent or a credential command,
// for no longer than most. Calling resume restarts it.
func (p *patience) aside(most time.Duration) (resume func()) {
	p.mu.Lock()
	limit, s := p.limit, p.stage
	p.mu.Unlock()
	p.step(most, stageHere)
	return func() { p.step(limit, s) }
}

// hold names the socket whose closing ends everything.
func (p *patience) hold(conn net.Conn) {
	p.mu.Lock()
	p.base = conn
	p.mu.Unlock()
	if p.ctx.Err() != nil { // it ended before there was a socket
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

// release stops the clocks; it returns false if they had run out.
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

// over reports whether we or the caller ended the dial.
func (p *patience) over() bool { return p.ctx.Err() != nil }

// failure says why the dial of what ended.
func (p *patience) failure(what string) *extensions.Error {
	cause := context.Cause(p.ctx)
	switch {
	case errors.Is(cause, errSlow):
		p.mu.Lock()
		s := p.stage
		p.mu.Unlock()
		e := extensions.Errorf(extensions.KindUnreachable, "%s does not answer: %w for %s", what, cause, s.what).WithRemedy("%s", s.remedy)
		e.RetryAfter = silentAgain
		return e
	case errors.Is(cause, context.DeadlineExceeded):
		return extensions.Errorf(extensions.KindTimeout, "time ran out while connecting to %s: %w", what, cause)
	}
	return extensions.Errorf(extensions.KindInterrupted, "the connection to %s was abandoned: %w", what, cause)
}
