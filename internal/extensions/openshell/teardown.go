package openshell

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// The gateway deletes a sandbox after it has answered.
const (
	goneWithin = 2 * time.Minute
	gonePause  = time.Second
)

// Teardown implements extensions.Backend. A sandbox is deleted by its name, so what has the name is compared before.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	report, err := b.teardown(ctx, h)
	return report, failed("teardown", h.ID, err)
}

func (b *backend) teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	s, err := b.owned(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	if err != nil {
		return report, err
	}
	m := s.GetMetadata()
	h.Ref = m.GetId()
	if s.GetStatus().GetPhase() != gateway.SandboxPhase_SANDBOX_PHASE_DELETING {
		_, err := b.gateway.DeleteSandbox(ctx, &gateway.DeleteSandboxRequest{Name: m.GetName(), Workspace: m.GetWorkspace()})
		if err != nil && !extensions.IsKind(err, extensions.KindNotFound) {
			return report, err
		}
	}
	report = extensions.CleanupReport{Removed: []string{"sandbox " + m.GetName()}, StartedAt: stamp(m)}
	err = ready.Wait{Interval: gonePause, Timeout: goneWithin}.Until(ctx, func(ctx context.Context) (string, error) {
		s, err := b.owned(ctx, h)
		if extensions.IsKind(err, extensions.KindNotFound) {
			return "", nil
		}
		return vendor + " says " + phaseOf(s), err
	})
	if extensions.IsKind(err, extensions.KindTimeout) && ctx.Err() == nil {
		err = extensions.Errorf(extensions.KindUnavailable, "%s still shows %s %s after it was told to delete it", vendor, m.GetName(), goneWithin).
			WithRemedy("destroy it again; if it stays, look at the gateway's log")
	}
	b.filled.Delete(m.GetId())
	return report, err
}
