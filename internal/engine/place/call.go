package place

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

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
	timeoutChange    = 5 * time.Minute  // extend, pause, delete a snapshot
	timeoutDial      = 30 * time.Second // to connect to a port inside
	timeoutHealth    = 20 * time.Second // whether a place answers, where others are left
	timeoutRoom      = 3 * time.Second  // how full a place is

	retryAttempts = 4
	retryBase     = 250 * time.Millisecond
	retryCap      = 20 * time.Second
)

// call describes one call into an extension. Adapters set no deadlines, retry
// nothing, redact nothing and log nothing.
type call struct {
	op      string
	binding string
	id      extensions.ID
	timeout time.Duration
	secrets map[string]extensions.Secret
	// once forbids retries: what the call does is not idempotent (exec), or
	// its caller settles failures itself.
	once bool
}

// invoke runs f under c's deadline and retries what its Kind allows: refused
// for now (nothing was made) and could not ask. An ambiguous failure is never
// retried here; its caller settles it by Find first.
func (p *Places) invoke(ctx context.Context, c call, f func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return p.classify(c, err)
		}
		err := p.invokeOnce(ctx, c, f)
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
		p.Log.Info("retrying", slog.String("op", c.op), slog.String("extension", c.binding),
			slog.String("sandbox", string(c.id)), slog.Duration("wait", wait), slog.Any("error", err))
		if Sleep(ctx, wait) != nil {
			return err
		}
	}
}

func (p *Places) invokeOnce(ctx context.Context, c call, f func(context.Context) error) error {
	cctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	start := time.Now()
	err := p.classify(c, f(cctx))
	p.Log.Debug("called", slog.String("op", c.op), slog.String("extension", c.binding),
		slog.String("sandbox", string(c.id)), slog.Duration("took", time.Since(start)), slog.Any("error", err))
	return err
}

func backoff(attempt int, err error) time.Duration {
	return cmp.Or(retryAfter(err), retryBase<<(attempt-1))
}

// retryAfter is what err, or what it wraps, says about when to ask again; 0 = nothing.
func retryAfter(err error) time.Duration {
	var x *extensions.Error
	for errors.As(err, &x) {
		if x.RetryAfter > 0 {
			return x.RetryAfter
		}
		err = x.Err
	}
	return 0
}

// Sleep waits for d, or until ctx ends, whose error it returns.
func Sleep(ctx context.Context, d time.Duration) error {
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
func (p *Places) classify(c call, err error) error {
	if err == nil {
		return nil
	}
	out := named(c, err)
	if secrets := p.secretsOf(c.binding, c.secrets); out.Err != nil && redact(out.Error()+out.Remedy, secrets) != out.Error()+out.Remedy {
		out.Err = errors.New(redact(out.Err.Error(), secrets))
		out.Remedy = redact(out.Remedy, secrets)
	}
	return out
}

// Classify makes err an *extensions.Error that names what was under way where
// no place was called.
func Classify(op string, id extensions.ID, err error) error {
	if err == nil {
		return nil
	}
	return named(call{op: op, id: id}, err)
}

func named(c call, err error) *extensions.Error {
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
	return &out
}
