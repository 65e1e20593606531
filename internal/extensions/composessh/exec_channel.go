package composessh

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"sync"
)

// said is what a script tells beside its streams; which fields count depends on
// the operation.
type said struct {
	Failure *failure `json:"failure"`

	Exit    *int   `json:"exit"`
	Timeout bool   `json:"timeout"`
	State   string `json:"state"` // of the container, after the command
	Service string `json:"service"`

	Method    string   `json:"method"` // how files go in and out: tar | copy
	UID       int      `json:"uid"`
	GID       int      `json:"gid"`
	Path      string   `json:"path"`
	Folder    bool     `json:"folder"`
	Direct    []string `json:"direct"`    // addresses the host can connect to
	Connected string   `json:"connected"` // by which tool
	Refused   string   `json:"refused"`   // why the service did not take the connection
	Words     string   `json:"words"`     // what an archiver complained of
	EOF       *int64   `json:"eof"`       // the service sends no more than these bytes
}

// maxSaid bounds one thing said, in bytes.
const maxSaid = 64 << 10

// channel takes what a script says out of a stream that also carries a
// command's output. Each is a record separator, the nonce, JSON, a record
// separator. The command does not know the nonce.
type channel struct {
	start []byte
	out   io.Writer // gets the rest of the stream; nil = dropped
	heard func(said)

	mu   sync.Mutex
	pend []byte
}

const recordSeparator = 0x1e

func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

func newChannel(nonce string, out io.Writer, heard func(said)) *channel {
	return &channel{start: append([]byte{recordSeparator}, nonce...), out: out, heard: heard}
}

// Write never fails on account of what is written.
func (c *channel) Write(p []byte) (int, error) {
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
			if len(body) > maxSaid {
				c.pend = nil
			}
			return len(p), nil
		}
		var s said
		if json.Unmarshal(body[:end], &s) == nil && c.heard != nil {
			c.heard(s)
		}
		c.pend = body[end+1:]
	}
}

// keep passes all but the last n pending bytes on.
func (c *channel) keep(n int) error {
	head := c.pend[:len(c.pend)-n]
	c.pend = c.pend[len(c.pend)-n:]
	return c.pass(head)
}

func (c *channel) pass(p []byte) error {
	if c.out == nil || len(p) == 0 {
		return nil
	}
	_, err := c.out.Write(p)
	return err
}

// end passes on what was held back as a possible beginning.
func (c *channel) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.keep(0)
}

// overlap is the length of the longest end of b that is a beginning of start.
func overlap(b, start []byte) int {
	for n := min(len(b), len(start)-1); n > 0; n-- {
		if bytes.HasPrefix(start, b[len(b)-n:]) {
			return n
		}
	}
	return 0
}
