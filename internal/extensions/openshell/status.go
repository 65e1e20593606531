package openshell

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// tell reads what the gateway tells of a sandbox. It has no deadline.
func (b *backend) tell(s *gateway.Sandbox) byname.Told {
	m := s.GetMetadata()
	id, generation := b.read(m)
	t := byname.Told{Called: m.GetName(), State: strings.ToLower(strings.TrimPrefix(s.GetStatus().GetPhase().String(), "SANDBOX_PHASE_")),
		Observation: extensions.Observation{ID: id, Generation: generation}}
	t.Handle = handle(id, m.GetWorkspace(), m.GetId())
	if at := m.GetCreatedAtMs(); at > 0 {
		t.StartedAt = time.UnixMilli(at).UTC()
	}
	switch s.GetStatus().GetPhase() {
	case gateway.SandboxPhase_SANDBOX_PHASE_READY:
		t.Phase, t.Reachability = extensions.PhaseReady, extensions.Reachability{WorkDir: m.GetAnnotations()[noteWorkDir]}
	case gateway.SandboxPhase_SANDBOX_PHASE_UNSPECIFIED, gateway.SandboxPhase_SANDBOX_PHASE_PROVISIONING,
		gateway.SandboxPhase_SANDBOX_PHASE_STARTING:
		t.Phase = extensions.PhaseProvisioning
	case gateway.SandboxPhase_SANDBOX_PHASE_ERROR:
		t.Phase, t.Reason = extensions.PhaseFailed, cmp.Or(b.trouble(s), "it failed at the gateway")
	case gateway.SandboxPhase_SANDBOX_PHASE_DELETING:
		t.Phase, t.Reason, t.Leaving = extensions.PhaseFailed, vendor+" deletes it", true
	case gateway.SandboxPhase_SANDBOX_PHASE_STOPPING, gateway.SandboxPhase_SANDBOX_PHASE_STOPPED:
		t.Phase = extensions.PhasePaused
	default:
		t.Phase, t.Reason = extensions.PhaseUnreachable, vendor+" does not know its state"
		t.Err = extensions.Failed("status", id,
			extensions.Errorf(extensions.KindUnavailable, "%s says %s of %s", vendor, t.State, m.GetName()), nil)
	}
	return t
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
