package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Bounds of one call into an extension. A create as a whole is bounded by the
// caller's context; these keep a backend that never answers from holding an
// operation for ever.
const (
	timeoutLook      = 60 * time.Second // status, find, probe
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
		out.Extension = cmp.Or(out.Extension, c.binding)
		out.ID = cmp.Or(out.ID, c.id)
	default:
		if errors.As(err, &inner) {
			out.RetryAfter = inner.RetryAfter
		} else {
			out.Op, out.Extension, out.ID = c.op, c.binding, c.id
		}
	}
	if text := out.Error(); out.Err != nil && mentions(text+out.Remedy, c.secrets) {
		out.Err = errors.New(redact(out.Err.Error(), c.secrets))
		out.Remedy = redact(out.Remedy, c.secrets)
	}
	return &out
}

func mentions(text string, secrets map[string]Secret) bool {
	for _, s := range secrets {
		if !s.IsZero() && strings.Contains(text, s.Reveal()) {
			return true
		}
	}
	return false
}

func redact(text string, secrets map[string]Secret) string {
	for _, s := range secrets {
		if !s.IsZero() {
			text = strings.ReplaceAll(text, s.Reveal(), extensions.Redacted)
		}
	}
	return text
}
