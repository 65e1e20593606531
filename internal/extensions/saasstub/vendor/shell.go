package vendor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// machine interprets commands over one object's tree. Every access of the shell to the host (files, folders,
// programs, environment) goes to the tree instead.
type machine struct {
	root *os.Root
	obj  Object
	env  map[string]string
	hear func(context.Context, string) error // what leaves the object
	mark string                              // exists while the object is paused
	time *virtual                            // an entrypoint's; nil = real time
}

// signaled is the error of a command that a signal ended.
type signaled struct{ signal syscall.Signal }

func (e signaled) Error() string { return "ended by " + e.signal.String() }

// run interprets cmd to its end and returns a shell's exit code.
func (m *machine) run(ctx context.Context, cmd Command) (int, error) {
	dir := resolve(m.obj.base(), cmd.Dir)
	if info, err := m.root.Stat(inside(dir)); err != nil || !info.IsDir() {
		return 0, fault(CodeInvalid, fmt.Sprintf("there is no folder %q inside", dir))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends background programs
	out, errw := &gate{w: cmd.Stdout}, &gate{w: cmd.Stderr}
	stdin, done, err := feed(cmd.Stdin)
	if err != nil {
		return 0, err
	}
	defer done()
	stop := context.AfterFunc(ctx, func() { _ = stdin.Close() }) // wakes a program that reads
	defer stop()

	env := m.environment(cmd, dir)
	code := m.interpret(ctx, cmd, dir, env, stdin, out, errw) // ends with ctx: every wait inside obeys it
	out.shut()
	errw.shut()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return code, nil
}

func (m *machine) interpret(ctx context.Context, cmd Command, dir string, env map[string]string, stdin *os.File, out, errw io.Writer) int {
	if cmd.Argv == nil {
		return m.shell(ctx, cmd.Script, "sh", nil, dir, env, stdin, out, errw)
	}
	call := &syntax.CallExpr{}
	for _, arg := range cmd.Argv {
		call.Args = append(call.Args, &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: arg}}})
	}
	if name := program(cmd.Argv[0]); interp.IsBuiltin(name) && !realProgram[name] {
		_, _ = fmt.Fprintf(errw, "%s: not found\n", cmd.Argv[0])
		return 127
	} else if realProgram[name] {
		call.Args[0].Parts[0] = &syntax.SglQuoted{Value: name}
	}
	return m.eval(ctx, &syntax.Stmt{Cmd: call}, nil, dir, env, stdin, out, errw)
}

// realProgram lists the shell's own words that also exist as programs.
var realProgram = map[string]bool{"true": true, "false": true, "echo": true, "printf": true, "pwd": true, "test": true, "[": true}

func (m *machine) shell(ctx context.Context, script, name string, params []string, dir string, env map[string]string,
	stdin *os.File, out, errw io.Writer) int {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), name)
	if err != nil {
		_, _ = fmt.Fprintf(errw, "%v\n", err)
		return 2
	}
	return m.eval(ctx, file, params, dir, env, stdin, out, errw)
}

func (m *machine) eval(ctx context.Context, node syntax.Node, params []string, dir string, env map[string]string,
	stdin *os.File, out, errw io.Writer) (code int) {
	defer func() { // a script must not end the process that interprets it
		if r := recover(); r != nil {
			_, _ = fmt.Fprintf(errw, "sh: cannot interpret this: %v\n", r)
			code = 2
		}
	}()
	vars := &environ{env: env}
	r, err := interp.New(interp.Env(vars), interp.StdIO(stdin, out, errw), interp.Params(append([]string{"--"}, params...)...),
		interp.OpenHandler(m.open), interp.ReadDirHandler2(m.readDir), interp.StatHandler(m.stat),
		interp.AccessHandler(m.access), interp.CallHandler(m.intercept),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return m.exec }))
	if err != nil {
		_, _ = fmt.Fprintf(errw, "sh: %v\n", err)
		return 2
	}
	r.Dir = dir
	r.Reset()
	vars.armed.Store(true)
	return exitCode(r.Run(ctx, node))
}

func exitCode(err error) int {
	var status interp.ExitStatus
	var sig signaled
	switch {
	case err == nil:
		return 0
	case errors.As(err, &sig):
		return 128 + int(sig.signal)
	case errors.As(err, &status):
		return int(status)
	}
	return 1
}

// environ hides the host: the shell asks it before falling back to the process that runs it. Until armed,
// TMPDIR is a folder that cannot exist, since the shell opens some files of its own there without asking us.
type environ struct {
	env   map[string]string
	armed atomic.Bool
}

func (e *environ) Get(name string) expand.Variable {
	if name == "TMPDIR" && !e.armed.Load() {
		return expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: "/\x00"}
	}
	if v, ok := e.env[name]; ok {
		return expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: v}
	}
	switch name {
	case "UID", "EUID", "GID":
		return expand.Variable{Set: true, ReadOnly: true, Kind: expand.String, Str: "1000"}
	}
	return expand.Variable{}
}

func (e *environ) Each(yield func(string, expand.Variable) bool) {
	for k := range e.env {
		if !yield(k, e.Get(k)) {
			return
		}
	}
}

// gate passes writes until it is shut, so that nothing that outlives a command can write to its caller. It is
// safe for concurrent use.
type gate struct {
	mu   sync.Mutex
	w    io.Writer
	done bool
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return 0, fs.ErrClosed
	}
	return g.w.Write(p)
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done = true
}

// feed gives the shell its standard input as a pipe, whose reads it can stop. done waits for the copy unless
// the reader behind it never answers.
func feed(r io.Reader) (stdin *os.File, done func(), err error) {
	pr, pw, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	if r == nil {
		_ = pw.Close()
		return pr, func() { _ = pr.Close() }, nil
	}
	go func() {
		_, _ = io.Copy(pw, r) // a command may end without reading all
		_ = pw.Close()
	}()
	return pr, func() { _ = pr.Close() }, nil
}

// signals are those that kill knows, by the names and numbers a script may use.
var signals = map[string]syscall.Signal{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "TERM": 15}

// intercept runs before every simple command: kill reaches only the script itself, and what would look
// programs up on the host is answered here.
func (m *machine) intercept(ctx context.Context, args []string) ([]string, error) {
	if err := m.hold(ctx); err != nil {
		return nil, err
	}
	switch args[0] {
	case "kill":
		sig, rest := syscall.SIGTERM, args[1:]
		if len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
			name := strings.TrimPrefix(strings.TrimPrefix(rest[0], "-"), "SIG")
			n, err := strconv.Atoi(name)
			if s, ok := signals[name]; ok {
				n, err = int(s), nil
			}
			if err != nil || n < 0 || n > 64 {
				return refuse(ctx, "kill: %s: no such signal\n", rest[0])
			}
			sig, rest = syscall.Signal(n), rest[1:]
		}
		if len(rest) == 1 && (rest[0] == strconv.Itoa(os.Getpid()) || rest[0] == "0") {
			if sig == 0 {
				return []string{"true"}, nil
			}
			return nil, signaled{sig}
		}
		return refuse(ctx, "kill: no such process\n")
	case "command":
		if len(args) == 3 && (args[1] == "-v" || args[1] == "-V") {
			return []string{"/bin/which", args[2]}, nil
		}
	}
	return args, nil
}

func refuse(ctx context.Context, format string, args ...any) ([]string, error) {
	_, _ = fmt.Fprintf(interp.HandlerCtx(ctx).Stderr, format, args...)
	return []string{"false"}, nil
}
