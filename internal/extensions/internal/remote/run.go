package remote

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Command is one script with live streams.
type Command struct {
	// Script is POSIX sh without NUL bytes.
	Script string
	// Vars become shell variables before the script; they are not exported.
	Vars map[string]string
	// Stdin is copied until it or the script ends; nil = empty. It is read in the background: a Read that
	// blocks does not delay Run, and what it returns after Run is lost.
	Stdin io.Reader
	// Stdout and Stderr receive what the script prints; nil = dropped. A slow writer slows only its own
	// script.
	Stdout, Stderr io.Writer
	// TTY asks for a terminal; all output then goes to Stdout.
	TTY *extensions.TTY
	// Raw leaves the terminal as the script came through it: nothing is interpreted or echoed, for a program
	// with its own terminal at the other end. Input typed meanwhile does not count as line editing.
	Raw bool
}

// Run runs a script on the host to its end. A non-zero exit is a result: the script's own code, or 128+n if
// signal n ended it. Once the script has ended, Run reads the output of processes it left behind for a short
// grace.
//
// Errors: KindUnreachable, KindUnauthorized and KindUnsupported if the script was certainly not started;
// KindIndeterminate if it was started and its end is unknown; KindTimeout if ctx's deadline passed;
// KindInterrupted if ctx was canceled before the start. See MayHaveStarted. If ctx ends a running script, its
// process group gets TERM, as far as the host lets us.
func (c *Client) Run(ctx context.Context, cmd Command) (exit int, err error) {
	return c.run(ctx, spec{
		framing: framing{script: cmd.Script, vars: cmd.Vars, tty: cmd.TTY != nil, raw: cmd.Raw},
		mark:    newMark(), stdin: cmd.Stdin, tty: cmd.TTY, out: into(cmd.Stdout), err: into(cmd.Stderr), stop: true,
	})
}

// into returns a function that writes to w. A writer that fails ends the run.
func into(w io.Writer) func([]byte) error {
	return func(p []byte) error {
		if w == nil {
			return nil
		}
		_, err := w.Write(p)
		return err
	}
}
