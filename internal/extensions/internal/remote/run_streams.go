package remote

import (
	"context"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// pump carries one of a session's streams to its reader.
type pump struct {
	src    io.Reader
	open   *opening
	turn   chan struct{} // held while the reader has a piece
	over   atomic.Bool   // the reader gets nothing more
	bytes  atomic.Int64
	looked int64
	ended  chan struct{} // closed at the end of the stream
	failed chan error    // the reader's error, if any
}

func newPump(src io.Reader, open *opening) *pump {
	return &pump{src: src, open: open, turn: make(chan struct{}, 1), ended: make(chan struct{}), failed: make(chan error, 1)}
}

// run reads to the end of the stream, whatever happens to the reader.
func (p *pump) run() {
	defer close(p.ended)
	buf := make([]byte, chunk)
	for {
		n, err := p.src.Read(buf)
		if n > 0 {
			p.bytes.Add(int64(n))
			p.pass(buf[:n])
			p.bytes.Add(1) // taking a piece is a sign of life too
		}
		if err != nil {
			return
		}
	}
}

func (p *pump) pass(piece []byte) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.over.Load() {
		return
	}
	if err := p.open.write(piece); err != nil {
		p.over.Store(true)
		p.failed <- err
	}
}

// writing reports whether the reader is busy with a piece.
func (p *pump) writing() bool { return len(p.turn) > 0 }

// moved reports whether anything arrived since the last call.
func (p *pump) moved() bool {
	n := p.bytes.Load()
	moved := n != p.looked
	p.looked = n
	return moved
}

// atEnd reports whether everything has been read.
func (p *pump) atEnd() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// stop keeps further pieces from the reader. A piece in progress gets a moment to be taken.
func (p *pump) stop() {
	p.over.Store(true)
	select {
	case p.turn <- struct{}{}:
		<-p.turn
	case <-time.After(time.Second):
	}
}

// feed sends the script and then the payload, to the end of either.
func (j *job) feed(over <-chan struct{}) {
	err := j.sendHead()
	j.sent <- err
	if err != nil {
		return
	}
	if j.waitStdin {
		select {
		case <-j.began:
		case <-over:
			return
		}
	}
	if j.stdin != nil && !j.copyStdin(over) {
		return
	}
	if j.tty != nil { // a terminal has no other end of file
		_, _ = j.session.ch.Write([]byte{4})
		return
	}
	_ = j.session.ch.CloseWrite()
}

// sendHead sends the script. Until its last piece is written, the host cannot have all of it.
func (j *job) sendHead() error {
	for rest := j.head; len(rest) > 0; {
		n := min(chunk, len(rest))
		last := n == len(rest)
		if last {
			j.handed.Store(true)
		}
		if _, err := j.session.ch.Write(rest[:n]); err != nil {
			if last {
				j.handed.Store(false)
			}
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (j *job) copyStdin(over <-chan struct{}) bool {
	buf := make([]byte, chunk)
	for {
		n, err := j.stdin.Read(buf)
		select {
		case <-over:
			return false
		default:
		}
		if n > 0 {
			if _, err := j.session.ch.Write(buf[:n]); err != nil {
				return false // the script reads no more
			}
		}
		if err != nil {
			if err != io.EOF {
				j.stdinErr.Store(&err)
			}
			return true
		}
	}
}

// resize forwards the terminal's size changes.
func (j *job) resize(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case size, ok := <-j.tty.Resize:
			if !ok {
				return
			}
			msg := struct{ Columns, Rows, Width, Height uint32 }{uint32(size[1]), uint32(size[0]), 0, 0}
			_, _ = j.session.ch.SendRequest("window-change", false, ssh.Marshal(msg))
		}
	}
}

// terminateLimit bounds how long ending its script may delay the end of a Run.
const terminateLimit = time.Second

// terminate ends the process group of a script that nobody waits for. A script that neither reads nor writes
// would not notice, and would hold a session of the host forever. sshd does this itself for terminals only.
func (c *Client) terminate(pid int) {
	if pid == 0 || c.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, terminateLimit)
	defer cancel()
	drop := func([]byte) error { return nil }
	_, err := c.run(ctx, spec{framing: framing{script: "kill -s TERM -- -" + strconv.Itoa(pid)}, mark: newMark(), out: drop, err: drop})
	c.host.opts.Log.Debug("remote: ended a script", "host", c.host.name, "pid", pid, "error", err)
}

// terminate asks the host to end what runs in the session. OpenSSH does so for logins other than root's.
func (s *session) terminate() {
	_, _ = s.ch.SendRequest("signal", false, ssh.Marshal(struct{ Signal string }{"TERM"}))
}

// ptyRequest asks for a terminal that carries the script unchanged: no echo, no line editing, no signals, no
// conversions. The script's first lines undo that.
func ptyRequest(tty *extensions.TTY) []byte {
	modes := []byte{}
	for _, off := range []byte{
		ssh.ECHO, ssh.ICANON, ssh.ISIG, ssh.IEXTEN, ssh.ICRNL, ssh.INLCR, ssh.IGNCR, ssh.IXON, ssh.IXOFF, ssh.ISTRIP, ssh.OPOST, ssh.ONLCR,
	} {
		modes = append(modes, off, 0, 0, 0, 0)
	}
	modes = append(modes, 0)
	return ssh.Marshal(struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}{"xterm-256color", uint32(tty.Cols), uint32(tty.Rows), 0, 0, string(modes)})
}
