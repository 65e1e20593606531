//go:build unix

package initd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// grace is how long output is still read after a command ended while other processes hold its streams open.
const grace = 150 * time.Millisecond

// exitNotFound and exitNotExecutable are what a shell returns.
const (
	exitNotFound      = 127
	exitNotExecutable = 126
)

func (c *session) exec() wire.Result {
	begun := time.Now()
	j, streams, r := c.launch()
	if j == nil {
		return r
	}
	r = c.attend(j, streams)
	r.Duration = int64(time.Since(begun))
	return r
}

// enter starts the entrypoint and watches it from then on.
func (c *session) enter() wire.Result {
	j, streams, r := c.launch()
	if j == nil {
		return r
	}
	for _, o := range streams.outputs {
		go c.keep(o.file)
	}
	go func() { c.exited <- exitCode(<-j.done) }()
	return wire.Result{}
}

// launch starts the program of the request; nil with the result that says why it did not.
func (c *session) launch() (*job, *streams, wire.Result) {
	argv := make([]string, 0, len(c.req.Argv))
	for _, a := range c.req.Argv {
		argv = append(argv, string(a))
	}
	if len(argv) == 0 {
		return nil, nil, wire.Result{Code: wire.CodeInvalid, Message: "nothing to run"}
	}
	dir, err := c.dir()
	if err != nil {
		return nil, nil, wire.Result{Code: wire.CodeInvalid, Message: err.Error()}
	}
	env := c.env()
	program, err := lookup(argv[0], dir, env)
	if err != nil {
		return nil, nil, c.cannotStart(argv[0], err)
	}
	streams, err := c.open()
	if err != nil {
		return nil, nil, failure(err)
	}
	j, err := c.procs.start(program, argv, env, dir, streams.child, c.req.TTY)
	streams.closeChild()
	if err != nil {
		streams.closeOurs()
		return nil, nil, c.cannotStart(argv[0], err)
	}
	return j, streams, wire.Result{}
}

// exitCode is a shell's: 128 and the number of the signal that ended it.
func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// attend moves the streams until the command ends, times out, or loses its client.
func (c *session) attend(j *job, s *streams) wire.Result {
	var reading sync.WaitGroup
	for _, o := range s.outputs {
		reading.Go(func() { c.pump(o) })
	}
	go c.feed(s)
	if s.terminal != nil {
		go c.resizes(s.terminal)
	}
	var timeout <-chan time.Time
	if c.req.TimeoutMS > 0 {
		t := time.NewTimer(time.Duration(c.req.TimeoutMS) * time.Millisecond)
		defer t.Stop()
		timeout = t.C
	}
	r := wire.Result{}
	var status syscall.WaitStatus
	hangUp := c.ctx.Done()
wait:
	for {
		select {
		case status = <-j.done:
			break wait
		case <-timeout:
			r.Code, r.Message = wire.CodeTimeout, "the timeout passed"
			c.procs.kill(j)
		case <-hangUp:
			hangUp = nil
			c.procs.kill(j)
		}
	}
	for _, o := range s.outputs {
		_ = o.file.SetReadDeadline(time.Now().Add(grace))
	}
	reading.Wait()
	s.closeInput()
	r.Exit = exitCode(status)
	return r
}

// pump sends one output stream to the client until it ends or the grace after the command is over. Later
// output of other processes goes to the log.
func (c *session) pump(o output) {
	buf := make([]byte, wire.ChunkSize)
	for {
		n, err := o.file.Read(buf)
		if n > 0 && c.out.Frame(o.kind, buf[:n]) != nil {
			err = os.ErrDeadlineExceeded // nobody listens: keep it out of the way
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.drain(o, buf)
			_ = o.file.SetReadDeadline(time.Time{})
			go c.keep(o.file)
			return
		default:
			_ = o.file.Close()
			return
		}
	}
}

// drain sends what the pipe already holds: the deadline must not cost a slow client the end of the output.
func (c *session) drain(o output, buf []byte) {
	raw, err := o.file.SyscallConn()
	if err != nil {
		return
	}
	_ = o.file.SetReadDeadline(time.Time{})
	left := 64 << 10
	_ = raw.Read(func(fd uintptr) bool {
		for left > 0 {
			n, err := syscall.Read(int(fd), buf[:min(left, len(buf))])
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if n <= 0 || c.out.Frame(o.kind, buf[:n]) != nil {
				return true
			}
			left -= n
		}
		return true
	})
}

func (c *session) keep(f *os.File) {
	buf := make([]byte, 8<<10)
	for {
		n, err := f.Read(buf)
		_, _ = c.logs.Write(buf[:n])
		if err != nil {
			_ = f.Close()
			return
		}
	}
}

func (c *session) cannotStart(name string, err error) wire.Result {
	if errors.Is(err, errPaused) {
		return failure(err)
	}
	r := wire.Result{Exit: exitNotExecutable}
	if errors.Is(err, fs.ErrNotExist) {
		r.Exit = exitNotFound
	}
	if errors.Is(err, syscall.E2BIG) {
		return wire.Result{Code: wire.CodeInvalid, Message: "the arguments and the environment are too long for the kernel"}
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		errno = syscall.ENOENT
	}
	_ = c.out.Frame(wire.FrameErrors, fmt.Appendf(nil, "sandboxer: %s: %s\n", name, errno.Error()))
	return r
}

func (c *session) dir() (string, error) {
	base := c.cfg.Workspace
	if base == "" {
		base = c.cfg.Home
	}
	dir := string(c.req.Dir)
	if !path.IsAbs(dir) {
		dir = path.Join(base, dir)
	}
	info, err := os.Stat(dir)
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.ENOENT
		}
		return "", fmt.Errorf("the working folder %q cannot be entered: %w", dir, errno)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("the working folder %q is not a folder", dir)
	}
	return dir, nil
}

// env returns the sandbox's environment overlaid with the request's, each name once.
func (c *session) env() []string {
	at := map[string]int{}
	var env []string
	add := func(kv string) {
		name, _, _ := strings.Cut(kv, "=")
		if i, ok := at[name]; ok {
			env[i] = kv
			return
		}
		at[name] = len(env)
		env = append(env, kv)
	}
	for _, kv := range c.cfg.Env {
		add(kv)
	}
	if c.req.TTY {
		add("TERM=xterm-256color")
	}
	for _, kv := range c.req.Env {
		add(string(kv))
	}
	return env
}

// lookup finds the program as execvp would, with the PATH the program gets.
func lookup(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		full := name
		if !path.IsAbs(name) {
			full = filepath.Join(dir, name)
		}
		return full, executable(full)
	}
	search := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	denied := error(syscall.ENOENT)
	for _, p := range filepath.SplitList(search) {
		if !path.IsAbs(p) {
			p = path.Join(dir, p)
		}
		full := path.Join(p, name)
		err := executable(full)
		if err == nil {
			return full, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	return "", denied
}

func executable(full string) error {
	info, err := os.Stat(full)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return syscall.EACCES
	}
	return nil
}
