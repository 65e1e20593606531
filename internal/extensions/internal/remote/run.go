package remote

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Command is one script with live streams.
type Command struct {
	// Script is POSIX sh, without NUL bytes.
	Script string
	// Vars become shell variables before the script; they are not exported.
	Vars map[string]string
	// Stdin is copied until it or the script ends; nil = empty. It is read in
	// the background: a Read that blocks does not hold Run up, and what it
	// returns after Run has is lost.
	Stdin io.Reader
	// Stdout and Stderr get what the script prints; nil = dropped. A slow
	// writer slows its own script only.
	Stdout, Stderr io.Writer
	// TTY asks for a terminal; all output then goes to Stdout.
	TTY *extensions.TTY
	// Raw leaves the terminal as the script came through it: nothing is
	// interpreted or echoed, for a program that has a terminal of its own at
	// the other end. What is typed meanwhile is not taken for line editing.
	Raw bool
}

// Run runs a script on the host to its end. A non-zero exit is a result: the
// script's own code, or 128+n when signal n ended it. Once the script has
// ended, what still comes from processes it left behind is read for a short
// grace.
//
// Errors: KindUnreachable, KindUnauthorized and KindUnsupported, when the script
// was certainly not started; KindIndeterminate, when it was started and its end
// is not known; KindTimeout when ctx's deadline passed, KindInterrupted when
// ctx was cancelled before the start. See MayHaveStarted. When ctx ends a
// running script, its process group gets TERM, as far as the host lets us.
func (c *Client) Run(ctx context.Context, cmd Command) (exit int, err error) {
	return c.run(ctx, spec{
		framing: framing{script: cmd.Script, vars: cmd.Vars, tty: cmd.TTY != nil, raw: cmd.Raw},
		mark:    newMark(), stdin: cmd.Stdin, tty: cmd.TTY, out: into(cmd.Stdout), err: into(cmd.Stderr), stop: true,
	})
}

// into writes to w. A writer that fails ends the run.
func into(w io.Writer) func([]byte) error {
	return func(p []byte) error {
		if w == nil {
			return nil
		}
		_, err := w.Write(p)
		return err
	}
}
