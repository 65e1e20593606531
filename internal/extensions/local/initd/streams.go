//go:build unix

package initd

import (
	"os"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

type output struct {
	file *os.File
	kind byte
}

// streams are the files between one command and us.
type streams struct {
	child    [3]*os.File
	stdin    *os.File // ours; nil = none
	outputs  []output
	terminal *os.File
}

func (c *session) open() (*streams, error) {
	s := &streams{}
	if c.req.TTY {
		ours, theirs, err := openTerminal(c.req.Rows, c.req.Cols)
		if err != nil {
			return nil, err
		}
		s.terminal, s.stdin = ours, ours
		s.child = [3]*os.File{theirs, theirs, theirs}
		s.outputs = []output{{ours, wire.FrameOutput}}
		return s, nil
	}
	var err error
	if c.req.Stdin {
		s.child[0], s.stdin, err = os.Pipe()
	} else {
		s.child[0], err = os.Open(os.DevNull)
	}
	for i, kind := range []byte{wire.FrameOutput, wire.FrameErrors} {
		var ours *os.File
		if err == nil {
			ours, s.child[i+1], err = os.Pipe()
		}
		if ours != nil {
			s.outputs = append(s.outputs, output{ours, kind})
		}
	}
	if err != nil {
		s.closeChild()
		s.closeOurs()
		return nil, err
	}
	return s, nil
}

func (s *streams) closeChild() {
	for _, f := range s.child {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (s *streams) closeInput() {
	if s.stdin != nil && s.terminal == nil {
		_ = s.stdin.Close()
	}
}

func (s *streams) closeOurs() {
	s.closeInput()
	for _, o := range s.outputs {
		_ = o.file.Close()
	}
}

// feed passes the client's input on, and keeps reading it after the command stopped, so that the client never
// blocks.
func (c *session) feed(s *streams) {
	deaf := s.stdin == nil
	for b := range c.in {
		if !deaf {
			if _, err := s.stdin.Write(b); err != nil {
				deaf = true
				s.closeInput()
			}
		}
		if c.out.Frame(wire.FrameAck, nil) != nil {
			return
		}
	}
	if s.terminal != nil && !deaf && c.req.Stdin && c.ctx.Err() == nil {
		_, _ = s.terminal.Write([]byte{4}) // end of file, as a person would type it
	}
	s.closeInput()
}

func (c *session) resizes(terminal *os.File) {
	for {
		select {
		case size := <-c.size:
			_ = resize(terminal, size[0], size[1])
		case <-c.ctx.Done():
			return
		}
	}
}
