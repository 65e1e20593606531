package daytona

import (
	"context"
	"net/http"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
)

// rests reports whether nothing of a sandbox runs and all of it is kept.
func (b *backend) rests(s *sandbox) bool {
	if b.vm {
		return s.at(api.SandboxStatePaused)
	}
	return s.at(api.SandboxStateStopped, api.SandboxStateArchiving, api.SandboxStateArchived)
}

// Pause implements extensions.Pauser. A virtual machine stands still; a container stops, which ends what runs in it.
func (b *backend) Pause(ctx context.Context, h extensions.Handle) (o extensions.Observation, err error) {
	defer tell("pause", h.ID, &err)
	s, err := b.pause(ctx, h)
	if err != nil {
		return o, err
	}
	return b.observe(s).Observation, nil
}

// pause returns the sandbox once it rests. What would delete it at its stop is lifted before.
func (b *backend) pause(ctx context.Context, h extensions.Handle) (*sandbox, error) {
	s, err := b.await(ctx, h, b.settled)
	if err != nil {
		return nil, err
	}
	verb := "stop"
	if b.vm {
		verb = "pause"
	}
	if b.runs(s) {
		if s.Gpu > 0 {
			return nil, extensions.Errorf(extensions.KindUnsupported, "%s deletes a sandbox with GPUs when it stops", vendor).
				WithRemedy("leave it running, or bring its work back and destroy it")
		}
		if s.AutoDeleteInterval != nil && *s.AutoDeleteInterval >= 0 {
			_, err = b.act(ctx, http.MethodPost, s.Id, nil, "autodelete", "-1")
		}
		if err == nil {
			_, err = b.act(ctx, http.MethodPost, s.Id, nil, verb)
		}
		if err != nil {
			return nil, err
		}
	}
	return b.await(ctx, h, b.rests)
}

// Resume implements extensions.Pauser. The vendor's clocks count from now, so it is told the deadline.
func (b *backend) Resume(ctx context.Context, h extensions.Handle, deadline time.Time) (o extensions.Observation, err error) {
	defer tell("resume", h.ID, &err)
	s, err := b.await(ctx, h, b.settled)
	if err == nil && b.rests(s) {
		_, err = b.act(ctx, http.MethodPost, s.Id, nil, "start")
	}
	if err == nil {
		_, err = b.await(ctx, h, b.runs)
	}
	if err == nil && !b.cloud {
		_, err = b.act(ctx, http.MethodPost, s.Id, nil, "autodelete", "0")
	}
	if err == nil {
		err = b.until(ctx, s.Id, deadline)
	}
	if err == nil {
		err = b.desktop(ctx, h)
	}
	if err == nil {
		return b.Runs(ctx, h)
	}
	return o, err
}
