package openshell

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

const (
	runs  = gateway.SandboxPhase_SANDBOX_PHASE_READY
	rests = gateway.SandboxPhase_SANDBOX_PHASE_STOPPED
)

// Pause implements extensions.Pauser. The gateway ends what runs and keeps the files.
func (b *backend) Pause(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	_, told, err := b.move(ctx, h, runs, rests, func(m *gateway.ObjectMeta) error {
		_, err := b.gateway.StopSandbox(ctx, &gateway.StopSandboxRequest{Name: m.GetName(), Workspace: m.GetWorkspace()})
		return err
	})
	return told.Observation, extensions.Failed("pause", h.ID, err, nil)
}

// Resume implements extensions.Pauser. A sandbox whose policy does not hold anew is stopped again.
func (b *backend) Resume(ctx context.Context, h extensions.Handle, _ time.Time) (extensions.Observation, error) {
	o, err := b.resume(ctx, h)
	return o, extensions.Failed("resume", h.ID, err, nil)
}

func (b *backend) resume(ctx context.Context, h extensions.Handle) (o extensions.Observation, err error) {
	s, _, err := b.move(ctx, h, rests, runs, func(m *gateway.ObjectMeta) error {
		_, err := b.gateway.StartSandbox(ctx, &gateway.StartSandboxRequest{Name: m.GetName(), Workspace: m.GetWorkspace()})
		return err
	})
	if err != nil {
		return o, err
	}
	err = b.guarded(ctx, s.GetSpec().GetPolicy(), h)
	if extensions.IsKind(err, extensions.KindUnsupported) {
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), gone.Timeout)
		defer cancel()
		if _, stop := b.Pause(again, h); stop != nil {
			err = extensions.Errorf(extensions.KindUnsupported, "%w; it was not stopped again: %w", err, stop)
		}
	}
	if err != nil {
		return o, err
	}
	return b.Runs(ctx, h)
}

// move brings a sandbox from one phase to the other, by one call, unless it is there or on its way.
func (b *backend) move(ctx context.Context, h extensions.Handle, from, to gateway.SandboxPhase,
	call func(*gateway.ObjectMeta) error) (s *gateway.Sandbox, told byname.Told, err error) {
	asked := false
	err = byname.OnItsWay.Until(ctx, func(ctx context.Context) (string, error) {
		var err error
		if s, told, err = b.Owned(ctx, h); err != nil {
			return "", err
		}
		switch phase := s.GetStatus().GetPhase(); {
		case phase == to:
			return "", nil
		case phase == from && !asked:
			err = call(s.GetMetadata())
			asked = err == nil
		case told.Phase == extensions.PhaseFailed:
			err = extensions.Errorf(extensions.KindFailed, "it can be neither stopped nor started: %s", told.Reason)
		}
		return vendor + " says " + told.State, err
	})
	return s, told, err
}
