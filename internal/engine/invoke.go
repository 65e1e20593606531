package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Bounds of one call into an extension. A create as a whole is bounded by the
// caller's context; these keep a backend that never answers from holding an
// operation for ever.
const (
	timeoutLook      = 60 * time.Second // status, find
	timeoutProbe     = 3 * time.Minute  // what holds on a small host takes a while to prove
	timeoutProvision = 20 * time.Minute
	timeoutReady     = 20 * time.Minute
	timeoutTeardown  = 10 * time.Minute
	timeoutChange    = 5 * time.Minute // extend, pause, snapshot

	retryAttempts = 4
	retryBase     = 250 * time.Millisecond
	retryCap      = 20 * time.Second
)

// call describes one call into an extension. This file is the only place that
// sets deadlines, retries, redacts and logs; adapters do none of it.
type call struct {
	op      string
	binding string
	id      ID
	timeout time.Duration
	secrets map[string]Secret
	// once forbids retries: what the call does is not idempotent (exec), or
	// its caller settles failures itself.
	once bool
}

// invoke runs f under c's deadline and retries what its Kind allows: refused
// for now (nothing was made) and could not ask. An ambiguous failure is never
// retried here; its caller settles it by Find first.
func (e *Engine) invoke(ctx context.Context, c call, f func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return e.classify(c, err)
		}
		err := e.invokeOnce(ctx, c, f)
		if err == nil || c.once || attempt == retryAttempts || ctx.Err() != nil {
			return err
		}
		var wait time.Duration
		switch extensions.KindOf(err) {
		case extensions.KindUnavailable, extensions.KindUnreachable:
			wait = backoff(attempt, err)
		default:
			return err
		}
		if wait > retryCap {
			return err // the backend asks for more patience than an apply has
		}
		e.log.Info("retrying", slog.String("op", c.op), slog.String("extension", c.binding),
			slog.String("sandbox", string(c.id)), slog.Duration("wait", wait), slog.Any("error", err))
		if sleep(ctx, wait) != nil {
			return err
		}
	}
}

func (e *Engine) invokeOnce(ctx context.Context, c call, f func(context.Context) error) error {
	cctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	start := time.Now()
	err := e.classify(c, f(cctx))
	e.log.Debug("called", slog.String("op", c.op), slog.String("extension", c.binding),
		slog.String("sandbox", string(c.id)), slog.Duration("took", time.Since(start)), slog.Any("error", err))
	return err
}

func backoff(attempt int, err error) time.Duration {
	var e *extensions.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		return e.RetryAfter
	}
	return retryBase << (attempt - 1)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// classify makes err an *extensions.Error that names the call, and takes the
// call's secrets out of its text.
func (e *Engine) classify(c call, err error) error {
	if err == nil {
		return nil
	}
	out := extensions.Error{Kind: extensions.KindOf(err), Remedy: extensions.RemedyOf(err), Err: err}
	var inner *extensions.Error
	switch whole := err.(type) { //nolint:errorlint // only err itself, not what it wraps, may be replaced
	case *extensions.Error:
		out = *whole
		out.Op = cmp.Or(out.Op, c.op)
		out.Extension = cmp.Or(c.binding, out.Extension) // users know the binding, not the handler
		out.ID = cmp.Or(out.ID, c.id)
	default:
		if errors.As(err, &inner) {
			out.RetryAfter = inner.RetryAfter
		} else {
			out.Op, out.Extension, out.ID = c.op, c.binding, c.id
		}
	}
	if secrets := e.secretsOf(c); out.Err != nil && mentions(out.Error()+out.Remedy, secrets) {
		out.Err = errors.New(redact(out.Err.Error(), secrets))
		out.Remedy = redact(out.Remedy, secrets)
	}
	return &out
}

// secretsOf lists, longest first, what must not be in the text of an error:
// the call's own secrets and the credentials of its place.
func (e *Engine) secretsOf(c call) []string {
	var out []string
	add := func(m map[string]Secret) {
		for _, s := range m {
			if len(s.Reveal()) >= shortestSecret {
				out = append(out, s.Reveal())
			}
		}
	}
	add(c.secrets)
	if b, ok := e.catalog.Binding(c.binding); ok {
		add(e.credentials(b))
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(out)
}

// Adapters keep secrets out of their errors; redaction is the net below. A
// value of a few bytes is no secret, and hiding it everywhere would tell what
// it is and spoil the message; a short one counts as a whole word only.
const (
	shortestSecret = 4
	shortSecret    = 8
)

func mentions(text string, secrets []string) bool { return redact(text, secrets) != text }

func redact(text string, secrets []string) string {
	for _, s := range secrets {
		text = replaceSecret(text, s)
	}
	return text
}

func replaceSecret(text, secret string) string {
	if len(secret) >= shortSecret {
		return strings.ReplaceAll(text, secret, extensions.Redacted)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, secret)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(secret)
		b.WriteString(text[:i])
		before, _ := utf8.DecodeLastRuneInString(b.String())
		after, _ := utf8.DecodeRuneInString(text[end:])
		if inWord(before) || inWord(after) {
			b.WriteString(secret)
		} else {
			b.WriteString(extensions.Redacted)
		}
		text = text[end:]
	}
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}
