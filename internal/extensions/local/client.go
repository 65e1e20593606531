package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// call is one request to an init.
type call struct {
	conn   net.Conn
	out    *wire.Writer
	in     *wire.Reader
	credit chan struct{}
	ended  chan struct{}
	stop   func() bool
	once   sync.Once
}

// open connects and sends the request. It hangs up when ctx ends.
func (b box) open(ctx context.Context, req wire.Request) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, ended := b.tombstone(); ended { // its init may still be ending what runs
		return nil, b.over()
	}
	conn, err := dialSocket(ctx, b)
	if err != nil {
		return nil, b.unreachable(err)
	}
	c := &call{conn: conn, out: wire.NewWriter(conn), in: wire.NewReader(conn), credit: make(chan struct{}, wire.Credit),
		ended: make(chan struct{})}
	c.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err := c.out.JSON(wire.FrameRequest, req); err != nil {
		c.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, b.unreachable(err)
	}
	return c, nil
}

// hungUp reports that the other end closed its socket, which an init does only when it ends.
func hungUp(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE},
		func(target error) bool { return errors.Is(err, target) })
}

// endingTime is how long an init may take to end after its socket is closed: the kernel frees its memory after that.
const endingTime = 10 * time.Second

func (p *process) endsWithin(limit time.Duration) bool {
	for until := time.Now().Add(limit); p.alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// unreachable tells an ended sandbox from one that does not answer.
func (b box) unreachable(err error) error {
	r, readErr := b.read()
	switch {
	case errors.Is(readErr, os.ErrNotExist), readErr == nil && b.adrift(r):
		return b.missing()
	case readErr != nil:
		return readErr
	case !r.Init.alive(), hungUp(err) && r.Init.endsWithin(endingTime):
		return b.over()
	}
	return extensions.Errorf(extensions.KindUnreachable, "the init of %s does not answer: %w", b.id, err)
}

func (b box) over() error {
	return extensions.Errorf(extensions.KindNotFound, "%s has ended", b.id).
		WithRemedy("create it again; terraform plan shows what happened to it")
}

func (c *call) close() {
	c.once.Do(func() {
		c.stop()
		close(c.ended)
		_ = c.conn.Close()
	})
}

// send passes input on, never more than the credit ahead of the init.
func (c *call) send(r io.Reader) error {
	buf := make([]byte, wire.ChunkSize)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			select {
			case c.credit <- struct{}{}:
			case <-c.ended:
				return nil
			}
			if err := c.out.Frame(wire.FrameInput, buf[:n]); err != nil {
				return nil // the result says why
			}
		}
		if errors.Is(err, io.EOF) {
			_ = c.out.Frame(wire.FrameInputEnd, nil)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// receive reads until the result and passes on what precedes it.
func (c *call) receive(stdout, stderr io.Writer) (wire.Result, error) {
	for {
		kind, payload, err := c.in.Next()
		if err != nil {
			return wire.Result{}, err
		}
		switch kind {
		case wire.FrameAck:
			select {
			case <-c.credit:
			default:
			}
		case wire.FrameOutput:
			_, err = stdout.Write(payload)
		case wire.FrameErrors:
			_, err = stderr.Write(payload)
		case wire.FrameResult:
			var r wire.Result
			if err := json.Unmarshal(payload, &r); err != nil {
				return r, fmt.Errorf("the init sent an invalid answer: %w", err)
			}
			return r, nil
		}
		if err != nil {
			return wire.Result{}, fmt.Errorf("%w: %w", errPassingOn, err)
		}
	}
}

var errPassingOn = errors.New("passing the data on")

// simple is a call without input whose output goes to w.
func (b box) simple(ctx context.Context, req wire.Request, w io.Writer) (wire.Result, error) {
	c, err := b.open(ctx, req)
	if err != nil {
		return wire.Result{}, err
	}
	defer c.close()
	r, err := c.receive(w, io.Discard)
	return r, b.explain(ctx, r, err)
}

// copyOut sends a sandbox's workspace and home to two writers.
func (b box) copyOut(ctx context.Context, workspace, home io.Writer) error {
	c, err := b.open(ctx, wire.Request{Op: wire.OpCopy})
	if err != nil {
		return err
	}
	defer c.close()
	r, err := c.receive(workspace, home)
	return b.explain(ctx, r, err)
}

// upload streams a tar archive to extract below dir.
func (b box) upload(ctx context.Context, op, dir string, archive io.Reader) error {
	c, err := b.open(ctx, wire.Request{Op: op, Path: []byte(dir)})
	if err != nil {
		return err
	}
	defer c.close()
	source := make(chan error, 1)
	go func() {
		err := c.send(archive)
		source <- err // before the connection ends: this is the cause, that the effect
		if err != nil {
			_ = c.conn.Close() // the init must not take half an archive for a whole one
		}
	}()
	r, err := c.receive(io.Discard, io.Discard)
	if err != nil {
		select {
		case err := <-source:
			if err != nil {
				return err
			}
		default:
		}
	}
	return b.explain(ctx, r, err)
}

// maxMessage bounds what an init's answer adds to a message: a list of names fits.
const maxMessage = 8000

// explain turns the result of a call into the contract's error.
func (b box) explain(ctx context.Context, r wire.Result, err error) error {
	switch {
	case errors.Is(err, errPassingOn):
		return err
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return b.unreachable(err)
	}
	text := extensions.Clean(r.Message, maxMessage)
	switch r.Code {
	case "":
		return nil
	case wire.CodeInvalid:
		return extensions.Errorf(extensions.KindInvalid, "%s", text)
	case wire.CodeNotFound:
		return extensions.Errorf(extensions.KindNotFound, "%s", text)
	case wire.CodePaused:
		return extensions.Paused(b.id)
	case wire.CodeTimeout:
		return extensions.Errorf(extensions.KindTimeout, "%s", text)
	case wire.CodeReadOnly:
		return extensions.Errorf(extensions.KindInvalid, "%s", text).WithRemedy("write to a writable folder, such as /tmp")
	case wire.CodeNoSpace:
		return extensions.Errorf(extensions.KindExhausted, "the sandbox's disk is full: %s", text).WithRemedy("raise resources.disk_mb")
	}
	return extensions.Errorf(extensions.KindInternal, "%s", text)
}
