package execwire

import (
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// streams separates a command's streams from its script's reports.
type streams struct {
	wire     Wire
	terminal bool
	frames   [2]*Frames // of stdout and stderr, as gates
	gates    [2]*gate

	untimed  chan struct{} // closed: the place does not watch the limit
	complete chan struct{} // closed: all that the command printed has come
	late     atomic.Bool   // it was killed at its limit from here

	mu      sync.Mutex
	began   bool
	refused bool
	output  bool
	end     *report
	raw     []byte // end as it came
}

func newStreams(s *Session, w Wire) *streams {
	t := &streams{wire: w, terminal: s.Request.TTY != nil, untimed: make(chan struct{}), complete: make(chan struct{})}
	for i, live := range []io.Writer{s.Request.Stdout, s.Request.Stderr} {
		t.gates[i] = &gate{kept: &extensions.Capture{Live: live}}
		if w.Hold != nil {
			t.gates[i].hold = w.Hold(t.gates[i].kept)
		}
		t.frames[i] = NewFrames(s.Channel, t.gates[i], t.hear)
	}
	t.gates[t.spoken()].shut = w.Quiet
	s.Stdout, s.Stderr, s.streams = t.frames[0], t.frames[1], t
	return t
}

// spoken is the stream of frames and reasons: with a terminal there is only one.
func (t *streams) spoken() int {
	if t.terminal {
		return 0
	}
	return 1
}

// hear takes one frame.
func (t *streams) hear(raw []byte) {
	r := decode(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case r.Exit != nil && t.end == nil:
		t.end, t.raw = &r, raw
	case r.Refused != "":
		t.refused = true
	case r.Output != "":
		t.output = true
	case r.Began > 0 && !t.began:
		t.began = true
		t.gates[t.spoken()].open()
		if !r.Timed {
			close(t.untimed)
		}
	case t.wire.Heard != nil:
		t.wire.Heard(raw)
	}
	if t.end != nil && t.end.Last && (t.output || t.terminal) {
		t.end.Last = false // once
		close(t.complete)
	}
}

func (t *streams) result(err error, req extensions.ExecRequest) (extensions.ExecResult, error) {
	for _, f := range t.frames {
		f.end()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := extensions.ExecResult{Merged: t.terminal}
	if t.end != nil {
		r.ExitCode = *t.end.Exit
	}
	switch {
	case t.late.Load(), err == nil && t.end != nil && t.end.Timeout:
		err = extensions.Errorf(extensions.KindTimeout, "the command was killed after its timeout of %s", req.Timeout).
			WithRemedy("raise the timeout, or run it in the background")
	case err != nil:
	case t.refused:
		folder := "its working folder"
		if req.Dir != "" {
			folder = strconv.Quote(extensions.Clean(req.Dir, 200))
		}
		err = extensions.Errorf(extensions.KindInvalid, "the command cannot run in %s", folder).
			At("dir").WithRemedy("create the folder first, or choose one that the user may enter")
	case t.end == nil:
		err = t.left()
	case t.wire.Judge != nil:
		r.ExitCode, err = t.wire.Judge(r.ExitCode, t.raw, t.gates[t.spoken()].kept)
	}
	for i, g := range t.gates {
		g.close()
		kept, cut := g.kept.Kept.Bytes(), g.kept.Cut
		if i == 0 {
			r.Stdout, r.StdoutTruncated = kept, cut
		} else {
			r.Stderr, r.StderrTruncated = kept, cut
		}
	}
	return r, err
}

// left returns the error of a script that ended without an exit code.
func (t *streams) left() error {
	if t.wire.Left != nil {
		if err := t.wire.Left(); err != nil {
			return err
		}
	}
	return extensions.Errorf(extensions.KindIndeterminate, "the command's script ended without a result").
		WithRemedy("check memory and disk where it ran, and what ended it")
}

// maxNoise is what is kept of a stream before the command begins, in bytes.
const maxNoise = 8 << 10

// gate passes a stream on while it is the command's.
type gate struct {
	kept *extensions.Capture
	hold Holder // nil = none

	mu     sync.Mutex
	shut   bool // until the command begins
	closed bool
	noise  []byte
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
	case g.shut:
		g.noise = append(g.noise, p...)
		g.noise = g.noise[max(0, len(g.noise)-maxNoise):]
	case g.hold != nil:
		return g.hold.Write(p)
	default:
		return g.kept.Write(p)
	}
	return len(p), nil
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.noise = false, nil
}

// before returns the end of what came while the gate was shut.
func (g *gate) before() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return string(g.noise)
}

// close lets nothing more through.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hold != nil {
		_ = g.hold.Flush()
	}
	g.closed = true
}
