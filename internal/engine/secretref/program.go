package secretref

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	maxStderrBytes = 4 << 10
	// killGrace is how long a killed program's grandchildren may hold its
	// output open before it is abandoned.
	killGrace = 2 * time.Second
)

func fromProgram(ctx context.Context, r reference, opts Options) ([]byte, error) {
	name, err := atHome(r, opts)
	if err != nil {
		return nil, err
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, missing(r, "the program is not found, or not executable")
	}
	timeout := cmp.Or(opts.Timeout, DefaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, r.args...)
	stdout := &bounded{limit: MaxValueBytes + 2, full: cancel}
	stderr := &bounded{limit: maxStderrBytes}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, killGrace
	ownGroup(cmd)
	err = cmd.Run()
	switch {
	case stdout.cut:
		return nil, unfit(r, "the program printed more than 64 KiB")
	case errors.Is(context.Cause(ctx), errTimeout) && err != nil:
		return nil, extensions.Errorf(extensions.KindTimeout, "the secret %s cannot be had: the program did not end within %s", r, timeout).
			WithRemedy("Make sure the program does not wait for input: it has no terminal.")
	case ctx.Err() != nil && err != nil:
		return nil, ctx.Err()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, missing(r, failure(err, stdout.buf.Bytes(), stderr.buf.String()))
	}
	return trim(stdout.buf.Bytes()), nil
}

var errTimeout = errors.New("the program took too long")

// failure tells how the program ended and the start of its stderr, unless
// that repeats something it had printed as the value.
func failure(err error, printed []byte, stderr string) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "the program could not be started"
	}
	text := fmt.Sprintf("the program ended with %s", exit.ProcessState)
	said := strings.TrimSpace(extensions.Clean(stderr, 300))
	if said == "" {
		return text
	}
	for word := range strings.FieldsSeq(string(printed)) {
		if len(word) >= shortestRepeat && strings.Contains(stderr, word) {
			return text + "; its message is withheld, for it repeats what was printed as the value"
		}
	}
	return text + ", saying: " + said
}

// shortestRepeat is how long a word of the value must be, in bytes, for its
// return on stderr to be more than chance.
const shortestRepeat = 4

// bounded keeps the first limit bytes; full, if set, is called at the first
// byte beyond.
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
