package execwire

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"io"
	"sync"
)

// maxFrame bounds one frame, in bytes.
const maxFrame = 64 << 10

const recordSeparator = 0x1e

// NewNonce returns 32 random hexadecimal digits.
func NewNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// Frames extracts a script's reports from a stream that also carries a command's output.
type Frames struct {
	start []byte
	out   io.Writer // receives the rest of the stream; nil = dropped
	heard func(report []byte)

	mu   sync.Mutex
	pend []byte
}

// NewFrames calls heard with the JSON of each frame of the nonce and passes everything else on to out.
func NewFrames(nonce string, out io.Writer, heard func(report []byte)) *Frames {
	return &Frames{start: append([]byte{recordSeparator}, nonce...), out: out, heard: heard}
}

// Write never fails because of the content written.
func (c *Frames) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pend) == 0 && bytes.IndexByte(p, recordSeparator) < 0 {
		return len(p), c.pass(p)
	}
	c.pend = append(c.pend, p...)
	for {
		at := bytes.Index(c.pend, c.start)
		if at < 0 {
			return len(p), c.keep(overlap(c.pend, c.start))
		}
		if err := c.keep(len(c.pend) - at); err != nil {
			return len(p), err
		}
		body := c.pend[len(c.start):]
		end := bytes.IndexByte(body, recordSeparator)
		if end < 0 {
			if len(body) > maxFrame {
				c.pend = nil
			}
			return len(p), nil
		}
		c.heard(bytes.Clone(body[:end]))
		c.pend = body[end+1:]
	}
}

// keep passes on all but the last n pending bytes.
func (c *Frames) keep(n int) error {
	head := c.pend[:len(c.pend)-n]
	c.pend = c.pend[len(c.pend)-n:]
	return c.pass(head)
}

func (c *Frames) pass(p []byte) error {
	if c.out == nil || len(p) == 0 {
		return nil
	}
	_, err := c.out.Write(p)
	return err
}

// end passes on bytes held back as a possible start of a frame.
func (c *Frames) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.keep(0)
}

// overlap returns the length of the longest suffix of b that is a prefix of start.
func overlap(b, start []byte) int {
	for n := min(len(b), len(start)-1); n > 0; n-- {
		if bytes.HasPrefix(start, b[len(b)-n:]) {
			return n
		}
	}
	return 0
}
