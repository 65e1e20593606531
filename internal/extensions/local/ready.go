package local

import (
	"context"
	"io"
	"net/url"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// How often and how long a readiness probe tries where the profile is silent.
const (
	probeInterval = 500 * time.Millisecond
	probeTimeout  = 2 * time.Minute
)

func checkProbe(p *extensions.Probe) error {
	if p == nil {
		return nil
	}
	if p.Service != "" {
		return extensions.Errorf(extensions.KindUnsupported, "readiness.service: a sandbox on this machine has no services").WithRemedy("drop it")
	}
	if p.HTTP != "" {
		if u, err := url.Parse(p.HTTP); err != nil || u.Scheme != "http" || u.Host == "" {
			return extensions.Errorf(extensions.KindInvalid, "readiness.http: %q is not an http:// URL", p.HTTP)
		}
	}
	return nil
}

// WaitReady implements extensions.Backend.
func (b *Backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Reachability, error) {
	r, err := b.waitReady(ctx, spec, h)
	return r, failed("wait", h.ID, err)
}

func (b *Backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Reachability, error) {
	var none extensions.Reachability
	bx, err := b.settings.resolve(h)
	if err != nil {
		return none, err
	}
	timeout := probeTimeout
	if p := spec.Readiness; p != nil && p.Timeout > 0 {
		timeout = time.Duration(p.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	why := ""
	for {
		o := b.status(h)
		switch o.Phase {
		case extensions.PhaseReady, extensions.PhaseProvisioning:
			done, reason, err := b.tryReady(ctx, bx, h, spec.Readiness)
			if done || err != nil {
				return b.status(h).Reachability, err
			}
			why = reason
		case extensions.PhaseAbsent, extensions.PhaseExpired, extensions.PhaseFailed:
			return none, extensions.Errorf(extensions.KindNotFound, "%s is %s: %s", h.ID, o.Phase, o.Reason)
		case extensions.PhaseUnreachable:
			return none, o.Err
		}
		interval := probeInterval
		if spec.Readiness != nil && spec.Readiness.Interval > 0 {
			interval = time.Duration(spec.Readiness.Interval)
		}
		select {
		case <-ctx.Done():
			return none, extensions.Errorf(extensions.KindTimeout, "not ready after %s: %s: %w", timeout, why, ctx.Err()).
				WithRemedy("look at the logs, or raise readiness.timeout")
		case <-time.After(interval):
		}
	}
}

// tryReady probes a sandbox that is whole and records the success.
func (b *Backend) tryReady(ctx context.Context, bx box, h extensions.Handle, p *extensions.Probe) (done bool, why string, err error) {
	rec, err := bx.read()
	if err != nil {
		return false, "", err
	}
	if rec.State == stateMaking {
		return false, "it is still being made", nil
	}
	if why = b.tryProbe(ctx, bx, h, p); why != "" {
		return false, why, nil
	}
	if rec.State == stateReady {
		return true, "", nil
	}
	err = b.locked(ctx, h, func(bx box, rec record) error {
		if rec.State == stateWaiting {
			rec.State = stateReady
		}
		return bx.write(rec)
	})
	return err == nil, "", err
}

// tryProbe returns why the sandbox is not ready, or "".
func (b *Backend) tryProbe(ctx context.Context, bx box, h extensions.Handle, p *extensions.Probe) string {
	switch {
	case p == nil:
		return ""
	case len(p.Command) > 0:
		r, err := b.Exec(ctx, h, extensions.ExecRequest{Command: p.Command, Timeout: 30 * time.Second})
		if err != nil {
			return err.Error()
		}
		if r.ExitCode != 0 {
			return "the probe's exit code is " + itoa(r.ExitCode) + ": " + extensions.Clean(string(r.Stderr), 200)
		}
		return ""
	}
	r, err := bx.simple(ctx, wire.Request{Op: wire.OpCheck, URL: p.HTTP, Address: p.TCP}, io.Discard)
	switch {
	case err != nil:
		return err.Error()
	case r.Exit != 0:
		return extensions.Clean(r.Message, 200)
	}
	return ""
}
