package docker

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// WaitReady implements extensions.Backend: every service has run for a while or is healthy, then the probe
// succeeds.
func (b *Backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, failed("wait", h.ID, err)
}

func (b *Backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	if err := b.resolve(ctx, h); err != nil {
		return extensions.Observation{}, err
	}
	var o extensions.Observation
	err := ready.Of(spec.Readiness).Until(ctx, func(ctx context.Context) (string, error) {
		found, err := b.look(ctx, h.ID)
		if err != nil {
			return "", err
		}
		o = b.observe(ctx, h, found)
		switch o.Phase {
		case extensions.PhaseReady:
			return b.unready(ctx, spec, h, found)
		case extensions.PhaseProvisioning, extensions.PhaseUnreachable:
			return o.Reason, nil
		case extensions.PhaseFailed, extensions.PhaseTerminated:
			return "", b.fell(ctx, h, o.Reason)
		}
		return "", extensions.Errorf(extensions.KindNotFound, "%s is %s: %s", h.ID, o.Phase, o.Reason)
	})
	if err != nil {
		return extensions.Observation{}, err
	}
	return o, nil
}

// maxSaid and maxDetail bound what is read of the logs of a sandbox that failed, in bytes, and what of it is told, in runes.
const maxSaid, maxDetail = 1 << 20, 2500

// fell is the error of a sandbox that failed before it was ready. A failed create removes it, so the error has the end of its
// log.
func (b *Backend) fell(ctx context.Context, h extensions.Handle, why string) error {
	if r, err := b.logs(ctx, h, extensions.LogRequest{Tail: 20}); err == nil {
		defer func() { _ = r.Close() }()
		text, _ := io.ReadAll(io.LimitReader(r, maxSaid))
		if said := extensions.LastLines(string(text), maxDetail); said != "" {
			return extensions.Errorf(extensions.KindFailed, "%s: %s", why, said)
		}
	}
	return extensions.Errorf(extensions.KindFailed, "%s, and its log has nothing", why).
		WithRemedy("run what it starts with by hand in a container of its image")
}

// unready says why a sandbox that runs is not ready, "" = it is.
func (b *Backend) unready(ctx context.Context, spec extensions.Spec, h extensions.Handle, found objects) (string, error) {
	for _, c := range found.containers {
		service := extensions.Clean(c.Labels[labelService], 80)
		if c.State != container.StateRunning || service == extensions.AgentService && !commanded(spec) {
			continue
		}
		r, err := b.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
		if err != nil || r.Container.State == nil {
			return fmt.Sprintf("the service %s cannot be inspected", service), nil
		}
		if health := r.Container.State.Health; health != nil && health.Status != container.NoHealthcheck {
			if health.Status != container.Healthy {
				return fmt.Sprintf("the service %s is %s", service, health.Status), nil
			}
			continue
		}
		started, _ := time.Parse(time.RFC3339Nano, r.Container.State.StartedAt)
		if left := time.Duration(spec.Settle) - time.Since(started); left > 0 {
			return fmt.Sprintf("the service %s has not run for %s yet", service, time.Duration(spec.Settle)), nil
		}
	}
	return ready.Probe(ctx, spec.Readiness, func(ctx context.Context, req extensions.ExecRequest) (extensions.ExecResult, error) {
		return b.Exec(ctx, h, req)
	})
}

// commanded reports that the agent runs a program of its own.
func commanded(spec extensions.Spec) bool {
	return !spec.Entrypoint.Idle() || spec.Containers != nil && len(spec.Containers.Agent.Command) > 0
}
