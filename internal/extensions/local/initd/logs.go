//go:build unix

package initd

import (
	"bytes"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// logBytes is how much of the output of background programs is kept.
const logBytes = 1 << 20

// ring keeps the last logBytes bytes written to it.
type ring struct {
	mu    sync.Mutex
	buf   []byte
	start int64 // offset of buf[0] in everything ever written
	grown chan struct{}
}

func newRing() *ring { return &ring{grown: make(chan struct{})} }

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = append(r.buf, p...)
	if over := len(r.buf) - logBytes; over > logBytes/2 { // cut rarely, since cutting copies
		r.buf = append(r.buf[:0:0], r.buf[over:]...)
		r.start += int64(over)
	}
	close(r.grown)
	r.grown = make(chan struct{})
	return len(p), nil
}

// from returns what was written from offset on, the offset after it, and a channel that closes when there is
// more.
func (r *ring) from(offset int64) ([]byte, int64, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := max(offset-r.start, 0)
	at = max(at, int64(len(r.buf)-logBytes))
	at = min(at, int64(len(r.buf)))
	return bytes.Clone(r.buf[at:]), r.start + int64(len(r.buf)), r.grown
}

func tail(b []byte, lines int) []byte {
	if lines <= 0 {
		return b
	}
	at := len(bytes.TrimSuffix(b, []byte("\n")))
	for range lines {
		if at = bytes.LastIndexByte(b[:at], '\n'); at < 0 {
			return b
		}
	}
	return b[at+1:]
}

func (c *session) readLogs() wire.Result {
	out := c.out.Stream(wire.FrameOutput)
	b, offset, more := c.logs.from(0)
	b = tail(b, c.req.Tail)
	for {
		if _, err := out.Write(b); err != nil || !c.req.Follow {
			return wire.Result{}
		}
		select {
		case <-more:
		case <-c.ctx.Done():
			return wire.Result{}
		}
		b, offset, more = c.logs.from(offset)
	}
}
