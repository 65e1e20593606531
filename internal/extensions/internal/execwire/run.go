package execwire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
)

const (
	// grace is what a place gets beyond a command's own limit, to end the command and report it.
	grace = 30 * time.Second
	// stopLimit bounds ending a command whose caller gave up.
	stopLimit = 20 * time.Second
	// lingering is how long output is read after a command's end: a grandchild may hold the streams forever.
	lingering = 500 * time.Millisecond
	// leaving is how long a transport may take to end once nobody waits for it.
	leaving = 5 * time.Second
)

// Wire is how one command reaches a place.
type Wire struct {
	// Start runs the command and returns once its script has ended or ctx has. It must not use the streams
	// after it returned.
	Start func(ctx context.Context, s *Session) error
	// Stop ends what a command left running that its caller gave up.
	Stop func(ctx context.Context, s *Session)
	// Quiet says that nothing before the first frame is the command's.
	Quiet bool
	// Hold, if set, stands between each stream of the command, stdout first, and what is kept of it.
	Hold func(out io.Writer) Holder
	// Heard, if set, gets the frames without an exit code.
	Heard func(report []byte)
	// Judge, if set, gets the frame with the exit code and decides what it means; reason is where words for the
	// caller go. It is not called for a command that was killed at its limit.
	Judge func(exit int, report []byte, reason io.Writer) (int, error)
	// Left, if set, explains a script that ended without an exit code; nil = it does not know either.
	Left func() error
}

// Session is one command under way.
type Session struct {
	Request extensions.ExecRequest // checked, with its timeout
	Channel string                 // the nonce of the frames
	Mark    string                 // the value of SANDBOXER_EXEC in all that the command starts
	// Stdout and Stderr take what the script prints. With a terminal, only Stdout is used.
	Stdout, Stderr io.Writer

	streams *streams
}

// Holder may hold bytes back until the command has ended.
type Holder interface {
	io.Writer
	Flush() error
}

// Limit returns the time limit in seconds: as a decimal, and rounded up for a sleep that knows no decimals.
func (s *Session) Limit() (exact, up string) {
	seconds := s.Request.Timeout.Seconds()
	return strconv.FormatFloat(max(seconds, 0.001), 'f', 3, 64), strconv.FormatInt(max(deadline.Up(s.Request.Timeout, time.Second), 1), 10)
}

// report is what this package reads in a frame.
type report struct {
	Began   int    `json:"began"`   // the command starts now
	Timed   bool   `json:"timed"`   // the place watches the limit itself
	Refused string `json:"refused"` // folder: the command cannot run there
	Output  string `json:"output"`  // ended: stdout has all that the command printed
	Exit    *int   `json:"exit"`
	Timeout bool   `json:"timeout"`
	Last    bool   `json:"last"` // stderr has all that the command printed
}

// Run checks a request, runs it by w and returns its result; see extensions.Execer for what it promises.
func Run(ctx context.Context, req extensions.ExecRequest, w Wire) (extensions.ExecResult, error) {
	if err := req.Check(); err != nil {
		return extensions.ExecResult{}, err
	}
	if req.Timeout == 0 {
		req.Timeout = extensions.DefaultExecTimeout
	}
	s := &Session{Request: req, Channel: NewNonce(), Mark: NewNonce()}
	streams := newStreams(s, w)
	limited, cancel := context.WithTimeout(ctx, req.Timeout+grace)
	defer cancel()
	begun := time.Now()
	err := streams.follow(limited, s, w)
	if err != nil && limited.Err() != nil {
		stop(ctx, s, w)
		err = givenUp(ctx, err)
	}
	result, err := streams.result(err, req)
	result.Duration = time.Since(begun)
	return result, err
}

func stop(ctx context.Context, s *Session, w Wire) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	w.Stop(ctx, s) // a place that cannot be reached now ends the command itself, at its limit
}

// givenUp returns the error of a call that timed out or whose caller left.
func givenUp(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return extensions.Errorf(extensions.KindInterrupted, "the command was abandoned and killed: %w", err)
	case ctx.Err() != nil:
		return extensions.Errorf(extensions.KindTimeout, "the command was killed when the call's time was up: %w", ctx.Err())
	}
	return extensions.Errorf(extensions.KindTimeout, "the command's time was up, and the host did not answer: %w", err).
		WithRemedy("check the host: the command may still run there")
}

// follow starts the command and returns when there is nothing left to wait for.
func (s *streams) follow(ctx context.Context, session *Session, w Wire) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = w.Start(running, session)
	}()
	var over <-chan time.Time
	untimed := s.untimed
	for {
		select {
		case <-ended:
			return failed
		case <-untimed: // the place has no clock
			untimed = nil
			timer := time.NewTimer(session.Request.Timeout)
			defer timer.Stop()
			over = timer.C
		case <-over:
			over = nil
			s.late.Store(true)
			stop(ctx, session, w)
		case <-s.complete:
			wait(ended, lingering)
			cancel()
			wait(ended, leaving)
			return nil
		case <-ctx.Done():
			if wait(ended, leaving) && failed != nil {
				return failed
			}
			return context.Cause(ctx)
		}
	}
}

// wait gives the transport so long to end; false = it did not.
func wait(ended <-chan struct{}, long time.Duration) bool {
	select {
	case <-ended:
		return true
	case <-time.After(long):
		return false
	}
}

// decode reads a frame; a broken one is an empty report.
func decode(raw []byte) report {
	var r report
	if json.Unmarshal(raw, &r) != nil {
		return report{}
	}
	return r
}
