package life

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Task is one command inside, with its expected outcome. Its Stdout and Stderr are not used.
type Task struct {
	extensions.ExecRequest
	// Secrets are additional environment variables of this command. They and the sandbox's own secrets are
	// redacted from its output wherever that is shown or stored. A name that Env has too is KindInvalid.
	Secrets map[string]extensions.Secret
	// Expected are the exit codes that count as success; none means 0 alone.
	Expected []int
	// Keep is how many bytes of each stream the result keeps, at most extensions.MaxExecOutput.
	Keep int
	// Line, if set, receives each line as it is printed, safe for a terminal and at most 400 runes long. One
	// call at a time; none where secrets of the sandbox stay unknown.
	Line func(string)
}

// TaskResult is what became of a Task.
type TaskResult struct {
	extensions.ExecResult
	// Began says that the command ran or may have run, in whole or in part. It is false only if it certainly
	// did not.
	Began bool
	// Ended says that the command ended by itself, so that ExitCode is its own.
	Ended bool
}

// Perform runs a task to its end. An unexpected exit code is KindFailed, with the end of the output in the
// error. KindTimeout means that the command exceeded its timeout and was ended, KindIndeterminate that it may
// or may not have run, and KindInterrupted that ctx ended it. With any other Kind, the command did not start.
func (m *Manager) Perform(ctx context.Context, rec plan.Receipt, t Task) (TaskResult, error) {
	req, err := t.request()
	if err != nil {
		return TaskResult{}, err
	}
	b, row, err := m.enterRow(ctx, rec)
	if err != nil {
		return TaskResult{}, err
	}
	told := hideOwn(ctx, b, row)
	if !told {
		t.Line = nil
	}
	hide := b.Redactor(row.ID, t.Secrets)
	out := &tail{}
	live := t.lines(hide)
	req.Stdout, req.Stderr = both{out, live.writer()}, both{out, live.writer()}
	res, err := b.Exec(ctx, row.Handle, place.Command{ExecRequest: insideFor(row, rec).wrap(req), Secrets: t.Secrets})
	live.flush()
	done := TaskResult{ExecResult: t.kept(res, hide), Began: began(err), Ended: err == nil}
	text := untold
	if told {
		text = out.lines(hide)
	}
	return done, t.judge(ctx, row.ID, res, err, text)
}

func (t Task) request() (extensions.ExecRequest, error) {
	req := t.ExecRequest
	req.Env = maps.Clone(t.Env)
	if req.Env == nil {
		req.Env = map[string]string{}
	}
	for name, s := range t.Secrets {
		if _, twice := t.Env[name]; twice {
			return req, extensions.Errorf(extensions.KindInvalid, "%s is set both as a variable and as a secret", extensions.Clean(name, 80)).
				WithRemedy("set it in one place")
		}
		req.Env[name] = s.Reveal()
	}
	return req, req.Check()
}

// began reports whether a command whose call ended with err ran or may have run; see extensions.Execer.
func began(err error) bool {
	switch extensions.KindOf(err) {
	case "", extensions.KindTimeout, extensions.KindIndeterminate, extensions.KindInterrupted, extensions.KindInternal, extensions.KindFailed:
		return true
	}
	return false
}

// judge says what the end of a task means; printed is the end of its output.
func (t Task) judge(ctx context.Context, id extensions.ID, res extensions.ExecResult, err error, printed string) error {
	const again = "check inside whether that matters, and run it again"
	fail := func(kind extensions.Kind, format string, args ...any) *extensions.Error {
		e := extensions.Errorf(kind, format, args...)
		e.Op, e.ID = "exec", id
		return e
	}
	switch kind := extensions.KindOf(err); {
	case err == nil && (slices.Contains(t.Expected, res.ExitCode) || len(t.Expected) == 0 && res.ExitCode == 0):
		return nil
	case err == nil:
		return fail(extensions.KindFailed, "the command ended with exit code %d%s", res.ExitCode, printed).
			WithRemedy("fix the command, or add this exit code to the expected ones")
	case !began(err):
		return err
	case ctx.Err() != nil:
		return fail(extensions.KindInterrupted, "the command was interrupted and may have run in part: %w%s", err, printed).WithRemedy(again)
	case kind == extensions.KindTimeout:
		return fail(kind, "the command exceeded its timeout and was ended: %w%s", err, printed).
			WithRemedy("make it faster, or raise its timeout")
	case kind == extensions.KindIndeterminate:
		return fail(kind, "it is unknown whether the command finished: %w%s", err, printed).WithRemedy(again)
	}
	return err
}

// kept returns what the result keeps of the output.
func (t Task) kept(res extensions.ExecResult, hide func(string) string) extensions.ExecResult {
	for _, s := range []struct {
		text *[]byte
		cut  *bool
	}{{&res.Stdout, &res.StdoutTruncated}, {&res.Stderr, &res.StderrTruncated}} {
		all := []byte(hide(string(*s.text)))
		if len(all) > t.Keep {
			all, *s.cut = wholeRunes(all[:max(t.Keep, 0)]), true
		}
		*s.text = all
	}
	return res
}

// wholeRunes drops the part of a character that a cut has left at the end.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// both writes the same to two writers that never fail.
type both struct{ one, other io.Writer }

func (b both) Write(p []byte) (int, error) {
	_, _ = b.one.Write(p)
	return b.other.Write(p)
}

// liveLines tells lines as they are printed, of both streams.
type liveLines struct {
	mu   sync.Mutex
	tell func(string)
	of   []*lineWriter
}

func (t Task) lines(hide func(string) string) *liveLines {
	l := &liveLines{tell: func(string) {}}
	if t.Line != nil {
		l.tell = func(raw string) {
			raw = strings.TrimRight(raw, "\r")
			raw = raw[strings.LastIndexByte(raw, '\r')+1:] // a progress bar's last word
			t.Line(extensions.Clean(strings.ToValidUTF8(hide(raw), "\ufffd"), lineShown))
		}
	}
	return l
}

// Limits of a line that is told: what is shown of it in runes, and what is kept of it in bytes, so that a
// secret is hidden before the line is cut.
const (
	lineShown = 400
	lineKept  = 64 << 10
)

func (l *liveLines) writer() *lineWriter {
	w := &lineWriter{all: l}
	l.of = append(l.of, w)
	return w
}

// flush tells what a stream printed after its last line break.
func (l *liveLines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.of {
		if len(w.line) > 0 {
			l.tell(string(w.line))
			w.line = nil
		}
	}
}

type lineWriter struct {
	all  *liveLines
	line []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		head, rest, whole := bytes.Cut(p, []byte("\n"))
		w.line = append(w.line, head[:min(len(head), max(lineKept-len(w.line), 0))]...)
		if whole {
			w.all.tell(string(w.line))
			w.line = w.line[:0]
		}
		p = rest
	}
	return n, nil
}
