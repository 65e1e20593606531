package vendor

import (
	"context"
	"io"
	"path"
	"time"
)

// Command is one thing to interpret. Exactly one of Argv and Script is set.
type Command struct {
	Argv           []string
	Script         string
	Stdin          io.Reader // nil = empty
	Stdout, Stderr io.Writer
	Dir            string
	Env            map[string]string
}

// Exec interprets a command in a live object and returns its exit code. When ctx ends, so does everything the
// command started, and the error is the context's. Background programs end with the command.
func (c *Client) Exec(ctx context.Context, ref string, cmd Command) (code int, err error) {
	root, o, lost := c.tree(ctx, OpExec, ref)
	if root == nil {
		return 0, lost
	}
	defer func() { _ = root.Close() }()
	if lost != nil { // the answer: the command runs all the same
		defer func() { code, err = 0, lost }()
	}
	env, err := readEnv(root)
	if err != nil {
		return 0, err
	}
	if o.State != StateRunning {
		return 0, fault(CodeConflict, "the object is not started yet")
	}
	defer c.v.Use(ctx, ref)()
	now, err := c.v.Now()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Deadline.Sub(now), fault(CodeEnded, "the object's deadline passed"))
	defer cancel()
	log := &logWriter{v: c.v, ref: ref}
	cmd.Stdout, cmd.Stderr = io.MultiWriter(cmd.Stdout, log), io.MultiWriter(cmd.Stderr, log)
	begun := time.Now()
	m := &machine{root: root, obj: o, env: env, hear: c.v.hear, mark: c.v.pausedMark(ref)}
	code, err = m.run(ctx, cmd)
	if err == nil {
		err = m.hold(ctx)
	}
	log.flush()
	busy := time.Since(begun)
	account := context.WithoutCancel(ctx) // the meter counts interrupted commands too
	if merr := c.v.transact(account, func(st *state) error {
		if o := st.Objects[ref]; o != nil {
			o.Busy += Duration(busy)
		}
		return nil
	}); err == nil {
		err = merr
	}
	return code, err
}

// environment returns what a command sees; later entries win.
func (m *machine) environment(cmd Command, dir string) map[string]string {
	env := map[string]string{"HOME": HomeDir, "PATH": "/usr/local/bin:/usr/bin:/bin", "USER": "sandbox", "LOGNAME": "sandbox"}
	for _, layer := range []map[string]string{m.env, cmd.Env, {"PWD": dir}} {
		for k, v := range layer {
			env[k] = v
		}
	}
	return env
}

// program returns a command word's name among the built-in programs, or "".
func program(word string) string {
	dir, base := path.Split(word)
	switch dir {
	case "", "/bin/", "/usr/bin/", "/usr/local/bin/":
		return base
	}
	return ""
}
