package e2btest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/process"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// processes are those that a sandbox's daemon started.
type processes struct {
	room  *box.Box
	mu    sync.Mutex
	all   map[uint32]*proc
	shut  bool // nothing more may start: the sandbox is paused or gone
	ended sync.WaitGroup
}

func newProcesses(r *box.Box) *processes { return &processes{room: r, all: map[uint32]*proc{}} }

func (p *processes) wait() { p.ended.Wait() }

func (p *processes) setShut(shut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = shut
}

var errShut = errors.New("the sandbox is not running")

// proc is one process. As at the vendor, it ends once its output has been closed by everything that holds it,
// or after a signal; nobody's connection keeps it alive, and none ends it.
type proc struct {
	config *process.ProcessConfig
	tag    *string
	pid    uint32
	cmd    *exec.Cmd
	tty    *os.File

	inMu sync.Mutex
	in   io.WriteCloser

	output context.Context //nolint:containedctx // it lasts as long as somebody may still write
	unread context.CancelFunc

	mu        sync.Mutex
	listeners map[chan *process.ProcessEvent]context.Context

	end  *process.ProcessEvent_EndEvent // once it is gone
	gone chan struct{}
}

// command is what a request asks for, with the sandbox's own answers filled in.
type command struct {
	config  *process.ProcessConfig
	path    string
	dir     string
	env     []string
	tag     *string
	stdin   bool
	pty     *process.PTY
	timeout time.Duration
}

// start runs c. Its output goes to nobody before listen.
//

func (p *processes) start(c command, life context.Context) (*proc, chan *process.ProcessEvent, error) { //nolint:revive // not the call's
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, nil, errShut
	}
	ctx, cancel := context.WithCancel(context.Background())
	if c.timeout > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), c.timeout)
	}
	q := &proc{config: c.config, tag: c.tag, cmd: exec.CommandContext(ctx, c.path, c.config.GetArgs()...), gone: make(chan struct{}),
		listeners: map[chan *process.ProcessEvent]context.Context{}}
	q.cmd.Args[0] = c.config.GetCmd()
	q.cmd.Dir, q.cmd.Env = c.dir, c.env
	q.output, q.unread = context.WithCancel(ctx)
	readers, err := q.open(c)
	if err == nil {
		err = p.room.Start(q.cmd)
	}
	if err != nil {
		q.close()
		cancel()
		return nil, nil, err
	}
	q.pid = called(q.cmd.Process.Pid)
	p.all[q.pid] = q
	events := q.listen(life)
	p.ended.Go(func() {
		defer cancel()
		q.run(readers)
		p.mu.Lock()
		delete(p.all, q.pid)
		p.mu.Unlock()
	})
	return q, events, nil
}

type reader struct {
	from io.Reader
	as   func([]byte) *process.ProcessEvent_DataEvent
}

// open makes the streams of a process that is about to start.
func (q *proc) open(c command) ([]reader, error) {
	if c.pty != nil {
		ours, theirs, err := box.OpenTerminal(c.pty.GetSize().GetRows(), c.pty.GetSize().GetCols())
		if err != nil {
			return nil, err
		}
		q.tty, q.in = ours, ours
		q.cmd.Stdin, q.cmd.Stdout, q.cmd.Stderr = theirs, theirs, theirs
		q.cmd.SysProcAttr = box.OnTerminal()
		return []reader{{ours, func(b []byte) *process.ProcessEvent_DataEvent {
			return &process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Pty{Pty: b}}
		}}}, nil
	}
	stdout, err1 := q.cmd.StdoutPipe()
	stderr, err2 := q.cmd.StderrPipe()
	var err3 error
	if c.stdin {
		q.in, err3 = q.cmd.StdinPipe()
	}
	return []reader{{stdout, func(b []byte) *process.ProcessEvent_DataEvent {
		return &process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stdout{Stdout: b}}
	}}, {stderr, func(b []byte) *process.ProcessEvent_DataEvent {
		return &process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stderr{Stderr: b}}
	}}}, errors.Join(err1, err2, err3)
}

// run reads the output to its end and reaps the process.
func (q *proc) run(readers []reader) {
	if q.tty != nil {
		_ = q.cmd.Stdin.(*os.File).Close() // theirs
	}
	var all sync.WaitGroup
	for _, r := range readers {
		all.Go(func() { q.copy(r) })
	}
	go func() { all.Wait(); q.unread() }()
	<-q.output.Done()
	err := q.cmd.Wait()
	if q.tty != nil {
		_ = q.tty.Close()
	}
	all.Wait()
	state := q.cmd.ProcessState
	end := &process.ProcessEvent_EndEvent{ExitCode: int32(state.ExitCode()), Exited: state.Exited(), Status: state.String()}
	if err != nil {
		text := err.Error()
		end.Error = &text
	}
	q.end = end
	close(q.gone)
}

func (q *proc) copy(r reader) {
	for {
		buf := make([]byte, 32<<10)
		n, err := r.from.Read(buf)
		if n > 0 {
			q.publish(&process.ProcessEvent{Event: &process.ProcessEvent_Data{Data: r.as(buf[:n])}})
		}
		if err != nil {
			return
		}
	}
}

// publish gives one event to all who listen, at the pace of the slowest.
func (q *proc) publish(e *process.ProcessEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for to, life := range q.listeners {
		select {
		case to <- e:
		case <-q.output.Done():
		case <-life.Done():
			delete(q.listeners, to)
		}
	}
}

func (q *proc) listen(life context.Context) chan *process.ProcessEvent {
	events := make(chan *process.ProcessEvent, 64)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.listeners[events] = life //nolint:fatcontext // one for each listener
	return events
}

// close frees the streams of a process that did not start.
func (q *proc) close() {
	q.unread()
	if q.tty != nil {
		_ = q.tty.Close()
	}
	if theirs, ok := q.cmd.Stdin.(*os.File); ok {
		_ = theirs.Close()
	}
}

// write gives a process its input, and no terminal where it has none.
func (q *proc) write(b []byte, terminal bool) error {
	q.inMu.Lock()
	defer q.inMu.Unlock()
	switch {
	case terminal != (q.tty != nil):
		return errors.New("the input of a terminal goes to the terminal, and that of others to stdin")
	case q.in == nil:
		return errors.New("stdin not enabled or closed")
	}
	_, err := q.in.Write(b)
	return err
}

func (q *proc) closeInput() error {
	q.inMu.Lock()
	defer q.inMu.Unlock()
	if q.tty != nil {
		return errors.New("cannot close stdin for PTY process — send Ctrl+D (0x04) instead")
	}
	if q.in == nil {
		return nil
	}
	err := q.in.Close()
	q.in = nil
	return err
}
