package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	// startLimit is how long a host may take to start a script it has received: the login shell's own start.
	// It is shorter than any caller's patience, so that the error can say what the wait was for.
	startLimit = 45 * time.Second
	// drainGrace is how long output may pause after the script's end before we stop reading, and drainLimit
	// bounds the whole: processes left behind may hold the streams forever.
	drainGrace = 500 * time.Millisecond
	drainLimit = 5 * time.Second
	drainStep  = 50 * time.Millisecond
	// chunk is a channel packet's worth of data, in bytes.
	chunk = 32 << 10
)

// job is one script in progress.
type job struct {
	client    *Client
	session   *session
	head      []byte // what bootstrap reads
	stdin     io.Reader
	tty       *extensions.TTY
	stop      bool // end the script with its caller
	out, err  *pump
	began     chan struct{} // closed at the mark
	pid       atomic.Int64  // of the script's sh, once it has started
	handed    atomic.Bool   // the whole script may have reached the host
	sent      chan error    // one value: the result of handing the script over
	stdinErr  atomic.Pointer[error]
	waitStdin bool // for the mark: a terminal is raw until then
}

func (j *job) hasBegun() bool {
	select {
	case <-j.began:
		return true
	default:
		return false
	}
}

// spec is what run needs of a Command or Call.
type spec struct {
	framing
	mark     string
	stdin    io.Reader
	tty      *extensions.TTY
	out, err func([]byte) error // receive what follows the mark; an error ends the run
	stop     bool
}

// run runs a script to its end, on a connection known to be alive. It writes nothing to out and err after it
// returns.
func (c *Client) run(ctx context.Context, sp spec) (exit int, err error) {
	head, err := sp.encode(sp.mark)
	if err != nil {
		return 0, err
	}
	ctx, done := c.bound(ctx)
	defer done()
	for attempt := 0; ; attempt++ {
		s, err := c.host.openSession(ctx, sp.tty)
		if err != nil {
			return 0, c.unreached(err)
		}
		j := c.newJob(s, head, sp)
		exit, err := j.do(ctx)
		if attempt == 0 && errors.Is(err, errDead) && !j.handed.Load() && ctx.Err() == nil {
			c.host.opts.Log.Debug("remote: the connection was lost before the script was handed over", "host", c.host.name, "error", err)
			continue
		}
		return exit, j.explain(ctx, exit, err)
	}
}

func (c *Client) newJob(s *session, head []byte, sp spec) *job {
	j := &job{client: c, session: s, head: head, stdin: sp.stdin, tty: sp.tty, stop: sp.stop, waitStdin: sp.tty != nil,
		began: make(chan struct{}), sent: make(chan error, 1)}
	once := sync.OnceFunc(func() { close(j.began) })
	began := func(pid int) {
		if pid > 1 {
			j.pid.Store(int64(pid))
		}
		once()
	}
	j.out = newPump(s.ch, newOpening(sp.mark, sp.out, began))
	j.err = newPump(s.ch.Stderr(), newOpening(sp.mark, sp.err, began))
	return j
}

var (
	errNoStatus = errors.New("the session ended without the script's exit status")
	errNotBegun = errors.New("the session ended before the script started")
	errTooSlow  = fmt.Errorf("its login shell did not start the script within %s", startLimit)
)

// do hands the script over and sees it to its end.
func (j *job) do(ctx context.Context) (exit int, err error) {
	over := make(chan struct{})
	go j.out.run()
	go j.err.run()
	go j.feed(over)
	if j.tty != nil && j.tty.Resize != nil {
		go j.resize(over)
	}
	exit, err = j.wait(ctx)
	close(over)
	if err != nil && j.stop && j.handed.Load() {
		j.session.terminate()
	}
	j.session.finish(err == nil)
	j.out.stop()
	j.err.stop()
	if err != nil && j.stop && j.tty == nil && !j.session.conn.isDead() {
		j.client.terminate(int(j.pid.Load()))
	}
	return exit, err
}

// wait returns once the script has ended and its output is read, or once there is nothing left to wait for.
func (j *job) wait(ctx context.Context) (int, error) {
	begin := time.NewTimer(startLimit)
	defer begin.Stop()
	began, sent := j.began, j.sent
	for {
		select {
		case code := <-j.session.status:
			return code, j.drain(ctx)
		case <-j.session.gone:
			select { // it may have arrived together with the end
			case code := <-j.session.status:
				return code, j.drain(ctx)
			default:
			}
			return 0, j.lost()
		case err := <-j.out.failed:
			return 0, err
		case err := <-j.err.failed:
			return 0, err
		case err := <-sent:
			sent = nil
			if err != nil && j.session.conn.gone() {
				return 0, j.session.conn.why
			} // otherwise the host will say why it rejected it
		case <-began:
			began = nil
			begin.Stop()
		case <-begin.C:
			return 0, errTooSlow
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (j *job) lost() error {
	if j.session.conn.gone() {
		return j.session.conn.why
	}
	return errNoStatus
}

// drain reads the script's last output.
func (j *job) drain(ctx context.Context) error {
	t := time.NewTicker(drainStep)
	defer t.Stop()
	var idle, total time.Duration
	out, errs := j.out.ended, j.err.ended
	for out != nil || errs != nil {
		select {
		case <-out:
			out = nil
		case <-errs:
			errs = nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
			if j.out.writing() || j.err.writing() { // we are the slow side
				idle = 0
				continue
			}
			total += drainStep
			idle += drainStep
			if j.out.moved() || j.err.moved() {
				idle = 0
			}
			if idle >= drainGrace || total >= drainLimit {
				return j.failure()
			}
		}
	}
	return j.failure()
}

// failure returns what went wrong with a stream that has since ended.
func (j *job) failure() error {
	select {
	case err := <-j.out.failed:
		return err
	case err := <-j.err.failed:
		return err
	default:
		return nil
	}
}
