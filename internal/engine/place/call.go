package place

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Time limits of one call into an extension. The caller's context limits a create as a whole; these keep a backend
// that never answers from blocking an operation.
const (
	timeoutLook      = 60 * time.Second // status, find
	timeoutProbe     = 3 * time.Minute  // a small host takes a while to prove what holds
	timeoutProvision = 20 * time.Minute
	timeoutReady     = 20 * time.Minute
	timeoutTeardown  = 10 * time.Minute
	timeoutChange    = 5 * time.Minute  // extend, pause, delete a snapshot
	timeoutDial      = 30 * time.Second // to connect to a port inside
	timeoutHealth    = 20 * time.Second // does a place answer, while others are left
	timeoutRoom      = 3 * time.Second  // how full a place is
)

// call describes one call into an extension. Adapters set no deadlines, retry nothing, redact nothing and log
// nothing.
type call struct {
	op      string
	binding string
	place   string // whose calls of this op are paced together
	id      extensions.ID
	timeout time.Duration                // of one attempt
	secrets map[string]extensions.Secret // beside those of the binding and the sandbox
	// patience bounds the retries; zero forbids them: what the call does is not idempotent (exec), or its
	// caller settles failures itself.
	patience patience
	// repeatable says that a second call leaves what one does: it may be made even if the answer was lost.
	repeatable bool
	// inside says that what is not found may be a file inside.
	inside bool
}

// invoke runs f under c's deadline and retries what its Kind allows, within c's patience: refused for now
// (nothing was made), could not ask, and where the call is repeatable also a lost answer. Any other ambiguous
// failure is never retried here; its caller settles it by Find first. This is the only retry: extensions
// classify and return.
func (p *Places) invoke(ctx context.Context, c call, f func(context.Context) error) error {
	r := retries{left: c.patience.within(ctx)}
	key := c.op + "\x00" + c.place
	var failed error
	for {
		if err := p.turn(ctx, c, key, &r, failed); err != nil {
			return err
		}
		start := time.Now()
		err := p.invokeOnce(ctx, c, f)
		if err == nil || c.patience == (patience{}) || !c.mayRepeat(err) || ctx.Err() != nil {
			return err
		}
		wait, told, ok := r.after(err, time.Since(start), rand.Float64()) //nolint:gosec // waits differ; nobody gains by foreseeing one
		if !ok {
			return err
		}
		p.Log.Info("retrying", slog.String("op", c.op), slog.String("extension", c.binding),
			slog.String("sandbox", string(c.id)), slog.Duration("wait", wait), slog.Any("error", err))
		if failed = err; told && extensions.IsKind(err, extensions.KindUnavailable) {
			p.pacer.slow(key, wait)
			continue
		}
		if told {
			r.left.told -= wait
		}
		if flight.Sleep(ctx, wait) != nil {
			return err
		}
	}
}

// turn waits until the place takes a call of this kind again. It returns failed, the call's last failure, if
// the patience or ctx ends first.
func (p *Places) turn(ctx context.Context, c call, key string, r *retries, failed error) error {
	if err := ctx.Err(); err != nil {
		return p.classify(c, err)
	}
	if c.patience == (patience{}) {
		return nil
	}
	start := time.Now()
	short, cancel := context.WithTimeout(ctx, max(r.left.told, 0))
	defer cancel()
	err := p.pacer.wait(short, key)
	r.left.told -= time.Since(start)
	switch {
	case err == nil:
		return nil
	case failed != nil:
		return failed
	case ctx.Err() != nil:
		return p.classify(c, ctx.Err())
	}
	return p.classify(c, extensions.Errorf(extensions.KindUnavailable, "it asks for fewer calls, and other calls are waiting too").
		WithRemedy("try again later, or create fewer at once (terraform apply -parallelism)"))
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

// classify makes err an *extensions.Error that names the call, and redacts what secretsOf lists.
func (p *Places) classify(c call, err error) error {
	var out *extensions.Error
	if !errors.As(extensions.Classify(c.op, c.binding, c.id, err), &out) {
		return nil
	}
	secrets, whole := p.secretsOf(c.binding, c.id, c.secrets), out.Error()+out.Remedy
	if out.Err != nil && redact(whole, secrets) != whole {
		out.Err = errors.New(redact(out.Err.Error(), secrets))
		out.Remedy = redact(out.Remedy, secrets)
	}
	return out
}
