//go:build unix

package initd

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

func (c *session) parse(payload []byte) error {
	if err := json.Unmarshal(payload, &c.req); err != nil {
		return errors.New("the request is invalid")
	}
	return nil
}

// serveOne carries out the request, which may be a use of the sandbox.
func (c *session) serveOne() wire.Result {
	done, ok := c.use(c.req.Op)
	if !ok {
		return wire.Result{Code: wire.CodeNotFound, Message: "nobody used the sandbox for so long that it is ending"}
	}
	defer done()
	return c.run()
}

func (c *session) run() wire.Result {
	switch c.req.Op {
	case wire.OpPause:
		return c.pause()
	case wire.OpResume:
		return c.unpause()
	case wire.OpLogs, wire.OpPing, wire.OpSnapshot, wire.OpCopy:
	default:
		if c.mode.paused() {
			return failure(errPaused)
		}
	}
	switch c.req.Op {
	case wire.OpExec:
		return c.exec()
	case wire.OpEnter:
		return c.enter()
	case wire.OpUpload, wire.OpSeed, wire.OpHome:
		return c.upload()
	case wire.OpDownload, wire.OpSnapshot:
		return c.download()
	case wire.OpCopy:
		return c.copyOut()
	case wire.OpLogs:
		return c.readLogs()
	case wire.OpCheck:
		return c.check()
	case wire.OpPing:
		return wire.Result{}
	}
	return wire.Result{Code: wire.CodeInvalid, Message: "unknown operation " + c.req.Op}
}

// input reads the client's input frames and returns the credit.
type input struct {
	c    *session
	rest []byte
}

func (in *input) Read(p []byte) (int, error) {
	for len(in.rest) == 0 {
		select {
		case b, ok := <-in.c.in:
			if !ok {
				if in.c.ctx.Err() != nil {
					return 0, io.ErrUnexpectedEOF
				}
				return 0, io.EOF
			}
			in.rest = b
			if err := in.c.out.Frame(wire.FrameAck, nil); err != nil {
				return 0, err
			}
		case <-in.c.ctx.Done():
			return 0, io.ErrUnexpectedEOF
		}
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

func failure(err error) wire.Result {
	if err == nil {
		return wire.Result{}
	}
	r := wire.Result{Code: wire.CodeInternal, Message: err.Error()}
	switch {
	case errors.Is(err, errPaused):
		r.Code = wire.CodePaused
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		r.Code = wire.CodeNoSpace
	case errors.Is(err, syscall.EROFS):
		r.Code = wire.CodeReadOnly
	case extensions.IsKind(err, extensions.KindNotFound), errors.Is(err, fs.ErrNotExist):
		r.Code = wire.CodeNotFound
	case extensions.IsKind(err, extensions.KindInvalid), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
		r.Code = wire.CodeInvalid
	}
	return r
}
