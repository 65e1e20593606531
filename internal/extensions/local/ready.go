package local

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

func checkProbe(p *extensions.Probe) error {
	if p == nil {
		return nil
	}
	if p.Service != "" {
		return extensions.Errorf(extensions.KindUnsupported, "readiness.service: a sandbox on this machine has no services").WithRemedy("drop it")
	}
	return ready.Check(p, "http")
}

const entryRemedy = "an entrypoint must run as long as its sandbox; run a program that ends at once as a command"

// WaitReady implements extensions.Backend.
func (b *Backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, failed("wait", h.ID, err)
}

func (b *Backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	var none extensions.Observation
	bx, err := b.settings.resolve(h)
	if err != nil {
		return none, err
	}
	err = ready.Of(spec.Readiness).Until(ctx, func(ctx context.Context) (string, error) {
		o := b.status(h)
		switch o.Phase {
		case extensions.PhaseAbsent, extensions.PhaseExpired, extensions.PhaseTerminated, extensions.PhaseFailed:
			if end, _ := bx.tombstone(); end.Reason == lease.ReasonExited {
				return "", extensions.Errorf(extensions.KindFailed, "%s before the sandbox was ready", o.Reason).WithRemedy(entryRemedy)
			}
			return "", extensions.Errorf(extensions.KindNotFound, "%s is %s: %s", h.ID, o.Phase, o.Reason)
		case extensions.PhaseUnreachable:
			return "", o.Err
		}
		return b.tryReady(ctx, bx, h, spec)
	})
	if err != nil {
		return none, err
	}
	return b.status(h), nil
}

// tryReady probes a complete sandbox and records success; why says that it is not there yet.
func (b *Backend) tryReady(ctx context.Context, bx box, h extensions.Handle, spec extensions.Spec) (why string, err error) {
	rec, err := bx.read()
	if err != nil {
		return "", err
	}
	if rec.State == stateMaking {
		return "it is still being created", nil
	}
	if !spec.Entrypoint.Idle() && time.Since(rec.StartedAt) < time.Duration(spec.Settle) {
		return "its entrypoint has not run for long enough yet (readiness.settle)", nil
	}
	if why = b.tryProbe(ctx, bx, h, spec.Readiness); why != "" || rec.State == stateReady {
		return why, nil
	}
	return "", b.locked(ctx, h, func(bx box, rec record) error {
		if rec.State == stateWaiting {
			rec.State = stateReady
		}
		return bx.write(rec)
	})
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
