package openshell

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// looks is how many sandboxes are looked at side by side.
const looks = 8

// Status implements extensions.Backend.
func (b *backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles == nil {
		all, err := b.list(ctx)
		out := make([]extensions.Observation, 0, len(all))
		for _, s := range all {
			id, _ := b.ours(s)
			out = append(out, b.observe(id, s))
		}
		return out, failed("status", "", err)
	}
	out := make([]extensions.Observation, len(handles))
	var g errgroup.Group
	g.SetLimit(looks)
	for i, h := range handles {
		g.Go(func() error {
			out[i] = b.look(ctx, h)
			return nil
		})
	}
	return out, g.Wait()
}

// look observes one sandbox.
func (b *backend) look(ctx context.Context, h extensions.Handle) extensions.Observation {
	o := extensions.Observation{ID: h.ID, Handle: h}
	s, err := b.owned(ctx, h)
	switch {
	case err == nil:
		return b.observe(h.ID, s)
	case extensions.IsKind(err, extensions.KindNotFound), extensions.IsKind(err, extensions.KindConflict):
		o.Phase = extensions.PhaseAbsent
	default:
		o.Phase, o.Reason, o.Err = extensions.PhaseUnreachable, vendor+" did not tell", failed("status", h.ID, err)
	}
	return o
}

// observe reads what the gateway tells of a sandbox. It has no deadline.
func (b *backend) observe(id extensions.ID, s *gateway.Sandbox) extensions.Observation {
	m := s.GetMetadata()
	o := extensions.Observation{ID: id, Handle: handle(id, m.GetWorkspace(), m.GetId()), Generation: generation(s), StartedAt: stamp(m)}
	switch s.GetStatus().GetPhase() {
	case gateway.SandboxPhase_SANDBOX_PHASE_READY:
		o.Phase, o.Reachability = extensions.PhaseReady, extensions.Reachability{WorkDir: m.GetAnnotations()[noteWorkDir]}
	case gateway.SandboxPhase_SANDBOX_PHASE_UNSPECIFIED, gateway.SandboxPhase_SANDBOX_PHASE_PROVISIONING,
		gateway.SandboxPhase_SANDBOX_PHASE_STARTING:
		o.Phase = extensions.PhaseProvisioning
	case gateway.SandboxPhase_SANDBOX_PHASE_ERROR:
		o.Phase, o.Reason = extensions.PhaseFailed, cmp.Or(b.trouble(s), "it failed at the gateway")
	case gateway.SandboxPhase_SANDBOX_PHASE_DELETING:
		o.Phase, o.Reason = extensions.PhaseFailed, vendor+" deletes it"
	case gateway.SandboxPhase_SANDBOX_PHASE_STOPPING, gateway.SandboxPhase_SANDBOX_PHASE_STOPPED:
		o.Phase, o.Reason = extensions.PhaseFailed, "it was stopped at the gateway, and what ran is gone"
	default:
		o.Phase, o.Reason = extensions.PhaseUnreachable, vendor+" does not know its state"
		o.Err = failed("status", id, extensions.Errorf(extensions.KindUnavailable, "%s says %s of %s", vendor, phaseOf(s), m.GetName()))
	}
	return o
}

func phaseOf(s *gateway.Sandbox) string {
	return strings.ToLower(strings.TrimPrefix(s.GetStatus().GetPhase().String(), "SANDBOX_PHASE_"))
}

// trouble is what the gateway says about a sandbox that failed.
func (b *backend) trouble(s *gateway.Sandbox) string {
	var said []string
	if s.GetStatus().ExitCode != nil {
		said = append(said, fmt.Sprintf("its own process ended with code %d", s.GetStatus().GetExitCode()))
	}
	for _, c := range s.GetStatus().GetConditions() {
		if text := strings.TrimSpace(c.GetReason() + " " + c.GetMessage()); text != "" && c.GetStatus() != "True" {
			said = append(said, text)
		}
	}
	return b.line.Words(strings.Join(said, "; "))
}

func stamp(m *gateway.ObjectMeta) time.Time {
	if m.GetCreatedAtMs() <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(m.GetCreatedAtMs()).UTC()
}

// Find implements extensions.Backend: the name is made of the id.
func (b *backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return extensions.Handle{}, failed("find", "", err)
	}
	s, err := b.owned(ctx, handle(id, b.workspace, ""))
	if extensions.IsKind(err, extensions.KindConflict) {
		err = extensions.Errorf(extensions.KindNotFound, "another sandbox at %s has its name", vendor)
	}
	if err != nil {
		return extensions.Handle{}, failed("find", id, err)
	}
	return handle(id, b.workspace, s.GetMetadata().GetId()), nil
}
