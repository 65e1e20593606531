package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// lingering is how long the streams of a program are read after its end: a grandchild may hold them forever.
const lingering = 500 * time.Millisecond

// program is one run: its first line of input is req, and it is killed with all of its process group when ctx ends.
// It is not started once ctx has ended.
func (b *backend) program(ctx context.Context, req request) (*exec.Cmd, []byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	file, err := resolve(b.command)
	if err != nil {
		return nil, nil, err
	}
	req.Contract, req.Binding, req.Account, req.StateDir = wireVersion, b.binding, b.account, b.stateDir
	req.Token, req.Settings = b.token.Reveal(), b.values
	line, err := json.Marshal(req)
	if err != nil {
		return nil, nil, extensions.Errorf(extensions.KindInvalid, "the request cannot be written: %w", err)
	}
	cmd := exec.CommandContext(ctx, file, req.Verb)
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{}, "/", lingering
	apart(cmd)
	cmd.Cancel = func() error { return kill(cmd.Process) }
	return cmd, append(line, '\n'), nil
}

// notStarted is the error of a program that certainly did not run.
func notStarted(err error) error {
	return extensions.Errorf(extensions.KindUnavailable, "the program could not be started: %w", err).
		WithRemedy("check that it runs: its interpreter, its architecture, the memory of this machine")
}

// call runs the program for one verb and returns its answer.
func (b *backend) call(ctx context.Context, req request) (answer, error) {
	limited, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	cmd, line, err := b.program(limited, req)
	if err != nil {
		return answer{}, err
	}
	out, words := &capped{limit: maxAnswer, full: cancel}, &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(line), out, words
	if err := cmd.Start(); err != nil {
		return answer{}, notStarted(err)
	}
	err = ran(cmd)
	switch {
	case out.over:
		return answer{}, lost(req.Verb, unknown("it is longer than %d bytes", maxAnswer), words.String())
	case limited.Err() != nil && !mutates(req.Verb): // nothing changed, and nothing was heard
		return answer{}, extensions.Errorf(extensions.KindUnreachable, "%s: the program was killed: %w", req.Verb, b.why(ctx))
	case limited.Err() != nil:
		return answer{}, lost(req.Verb, fmt.Errorf("the program was killed: %w", b.why(ctx)), words.String())
	case err != nil:
		return answer{}, lost(req.Verb, fmt.Errorf("the program failed: %w", err), words.String())
	}
	a, err := read(req.Verb, out.kept.Bytes())
	if errors.Is(err, errUnknown) {
		err = lost(req.Verb, err, words.String())
	}
	return a, err
}

// why says who ended a run: the caller, or the binding's limit.
func (b *backend) why(ctx context.Context) error {
	if ctx.Err() != nil {
		return errors.New("the call was abandoned")
	}
	return fmt.Errorf("it took longer than %s", b.timeout)
}

// ran waits for the program and ends what it left of its process group.
func ran(cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = kill(cmd.Process) // there is none, as a rule
	if errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		return nil // it ended, and another held its streams
	}
	return err
}

// read takes the answer to a verb, and nothing else.
func read(verb string, text []byte) (a answer, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return a, unknown("it said nothing")
	}
	if err := decode(text, &a); err != nil {
		return a, unknown("%s", extensions.Clean(err.Error(), 200))
	}
	if a.Contract != wireVersion {
		return a, unknown("contract is %d, and this is %d", a.Contract, wireVersion)
	}
	given := map[string]bool{"error": a.Error != nil, "sandboxes": a.Sandboxes != nil, "report": a.Report != nil, "usage": a.Usage != nil}
	want := map[string]string{verbTeardown: "report", verbUsage: "usage"}[verb]
	if want == "" {
		want = "sandboxes"
	}
	if a.Error != nil {
		want = "error"
	}
	for name, there := range given {
		if there != (name == want) {
			return a, unknown("%s must answer %s or error, and nothing else", verb, want)
		}
	}
	if a.Error != nil {
		return a, a.Error.err(verb)
	}
	return a, nil
}

// capped keeps a stream up to a limit, and calls full beyond it.
type capped struct {
	kept  bytes.Buffer // no embedding: its ReadFrom knows no limit
	limit int
	over  bool
	full  func()
}

func (c *capped) Write(p []byte) (int, error) {
	if c.over || c.kept.Len()+len(p) > c.limit {
		c.over = true
		c.full()
		return 0, io.ErrShortBuffer
	}
	return c.kept.Write(p)
}

// tail keeps the end of a stream.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxWords; over > 0 {
		t.kept = append([]byte{}, t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
