package secretref

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// killGrace is how long a killed program's grandchildren may keep its output open before it is abandoned.
const killGrace = 2 * time.Second

func fromProgram(ctx context.Context, r reference, opts Options) ([]byte, error) {
	name, err := atHome(r, opts)
	if err != nil {
		return nil, err
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, missing(r, "the program was not found or is not executable")
	}
	timeout := cmp.Or(opts.Timeout, DefaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, r.args...)
	stdout := &bounded{limit: MaxValueBytes + 2, full: cancel}
	cmd.Stdout, cmd.WaitDelay = stdout, killGrace
	ownGroup(cmd)
	err = cmd.Run()
	switch {
	case stdout.cut:
		return nil, unfit(r, "the program printed more than 64 KiB")
	case errors.Is(context.Cause(ctx), errTimeout) && err != nil:
		return nil, extensions.Errorf(extensions.KindTimeout, "the secret %s cannot be read: the program did not end within %s", r, timeout).
			WithRemedy("Make sure the program does not wait for input: it has no terminal.")
	case ctx.Err() != nil && err != nil:
		return nil, ctx.Err()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, failed(r, err)
	}
	return trim(stdout.buf.Bytes()), nil
}

var errTimeout = errors.New("the program took too long")

// failed says how the program ended. It omits the program's output: stderr may repeat the value, whole, in
// part or encoded.
func failed(r reference, err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return missing(r, "the program could not be started")
	}
	return extensions.Errorf(extensions.KindUnauthorized, "the secret %s cannot be read: the program ended with %s", r, exit.ProcessState).
		WithRemedy("Run the program by hand to see its output, which is never shown here because it may contain the secret.")
}

// bounded keeps the first limit bytes; full, if set, is called at the first byte beyond them.
type bounded struct {
	buf   bytes.Buffer
	limit int
	cut   bool
	full  func()
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.buf.Len()
	b.buf.Write(p[:min(room, len(p))])
	if len(p) > room {
		b.cut = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}
