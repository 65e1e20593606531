package remote

import (
	"context"
	"io"
)

// DefaultMaxAnswer bounds a Call's answer if MaxAnswer is zero, in bytes.
const DefaultMaxAnswer = 8 << 20

// Call is one lifecycle script that answers with one JSON document.
type Call struct {
	// Script is POSIX sh without NUL bytes. The prelude defines these functions before it: answer, fail,
	// progress, json_string.
	Script string
	// Vars become shell variables before the script; they are not exported.
	Vars map[string]string
	// Payload is the script's stdin until EOF; nil = empty. A script sees a cut connection as EOF too: only a
	// length and digest in Vars tell it that the payload is complete.
	Payload io.Reader
	// MaxAnswer bounds the answer in bytes; 0 = DefaultMaxAnswer.
	MaxAnswer int64
	// Progress receives the script's progress lines, cleaned; nil = dropped. It is called from one goroutine
	// at a time and should be quick.
	Progress func(line string)
}

// maxStray bounds what a Call's script may print on each stream beside its answer, in bytes.
const maxStray = 16 << 20

// Call runs the script and decodes its answer, strictly, into answer; nil drops the answer. It returns Run's
// errors, an error the script answered with fail, of the kind it named, and KindInternal if the script ended
// without a readable answer. Ending ctx does not end the script: it runs to its end.
func (c *Client) Call(ctx context.Context, call Call, answer any) error {
	limit := call.MaxAnswer
	if limit <= 0 {
		limit = DefaultMaxAnswer
	}
	mark := newMark()
	out, errs := newAnswerReader(mark, limit), newStderrReader(mark, call.Progress)
	exit, err := c.run(ctx, spec{
		framing: framing{script: call.Script, vars: call.Vars, call: true},
		mark:    mark, stdin: call.Payload, out: out.write, err: errs.write,
	})
	if err != nil {
		return err
	}
	return c.decode(exit, out, errs, answer)
}
