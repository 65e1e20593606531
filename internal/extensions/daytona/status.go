package daytona

import (
	"cmp"
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// observe reads what the vendor tells of a sandbox. Another account's has no id.
func (b *backend) observe(s *sandbox) byname.Told {
	id, err := extensions.ParseID(s.Labels[extensions.LabelID])
	if err != nil || s.Labels[extensions.LabelAccount] != b.account {
		id = ""
	}
	cpu, memory, disk := extensions.Milli(s.Cpu*1000), int64(s.Memory*1024), int64(s.Disk*1024)
	o := byname.Told{State: string(s.state()), Observation: extensions.Observation{ID: id, Handle: handle(id, s.Id),
		Generation: labels.Generation(s.Labels), StartedAt: stamp(rest.Value(s.CreatedAt)), Deadline: stamp(s.AutoDestroyAt),
		Allocated: extensions.Resources{CPU: &cpu, MemoryMB: &memory, DiskMB: &disk}}}
	if s.Gpu > 0 {
		o.Allocated.GPU = &extensions.GPU{Count: int64(s.Gpu)}
		if s.GpuType != nil {
			o.Allocated.GPU.Model = string(*s.GpuType)
		}
	}
	switch {
	case b.rests(s), b.vm && s.at(api.SandboxStatePausing), !b.vm && s.at(api.SandboxStateStopping):
		o.Phase = extensions.PhasePaused
	case s.at(api.SandboxStateStarted, api.SandboxStateResizing, api.SandboxStateSnapshotting, api.SandboxStateForking):
		o.Phase, o.Reachability = extensions.PhaseReady, extensions.Reachability{WorkDir: s.Labels[labelWorkDir]}
	case s.at(api.SandboxStateCreating, api.SandboxStateRestoring, api.SandboxStateStarting, api.SandboxStatePendingBuild,
		api.SandboxStateBuildingSnapshot, api.SandboxStatePullingSnapshot, api.SandboxStateResuming):
		o.Phase = extensions.PhaseProvisioning
	case s.at(api.SandboxStateUnknown):
		o.Phase, o.Reason = extensions.PhaseUnreachable, vendor+" does not know its state"
		o.Err = extensions.Errorf(extensions.KindUnavailable, "%s does not know the state of %s", vendor, s.Id)
		tell("status", id, &o.Err)
	case s.at(api.SandboxStateDestroying):
		o.Phase, o.Reason, o.Leaving = extensions.PhaseFailed, vendor+" destroys it", true
		if !o.Deadline.IsZero() && b.control.Until(o.Deadline) <= time.Second { // it is at most that much too long
			o.Phase = extensions.PhaseExpired
		}
	case s.at(api.SandboxStateError, api.SandboxStateBuildFailed):
		o.Phase, o.Reason = extensions.PhaseFailed, cmp.Or(extensions.Clean(rest.Value(s.ErrorReason), 400), "it failed at "+vendor)
	default:
		o.Phase, o.Reason = extensions.PhaseFailed, "it was stopped at "+vendor+" ("+extensions.Clean(o.State, 40)+"), and what ran is gone"
	}
	return o
}

// Find implements extensions.Backend. What is left of a fork that was never made has a handle without a name.
func (b *backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h, err := b.Place.Find(ctx, id)
	if extensions.IsKind(err, extensions.KindNotFound) && b.vm {
		if _, err = b.kept(ctx, forkName(id)); err == nil {
			return handle(id, ""), nil
		}
		tell("find", id, &err)
	}
	return h, err
}
