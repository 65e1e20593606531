package daytona

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/looks"
)

// Status implements extensions.Backend. A listing may lag, so single sandboxes are looked at by name.
func (b *backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles == nil {
		all, err := b.list(ctx)
		out := make([]extensions.Observation, 0, len(all))
		for _, s := range all {
			id, _ := b.ours(&s)
			out = append(out, b.observe(id, &s))
		}
		return out, failed("status", "", err)
	}
	return looks.Each(ctx, vendor, handles, func(ctx context.Context, h extensions.Handle) (o extensions.Observation, err error) {
		s, err := b.owned(ctx, h)
		if err == nil {
			o = b.observe(h.ID, s)
		}
		return o, err
	}), nil
}

// observe reads what the vendor tells of a sandbox.
func (b *backend) observe(id extensions.ID, s *sandbox) extensions.Observation {
	cpu, memory, disk := extensions.Milli(s.Cpu*1000), int64(s.Memory*1024), int64(s.Disk*1024)
	o := extensions.Observation{ID: id, Handle: handle(id, s.Id), Generation: labels.Generation(s.Labels),
		StartedAt: stamp(value(s.CreatedAt)), Deadline: stamp(s.AutoDestroyAt),
		Allocated: extensions.Resources{CPU: &cpu, MemoryMB: &memory, DiskMB: &disk}}
	if s.Gpu > 0 {
		o.Allocated.GPU = &extensions.GPU{Count: int64(s.Gpu)}
		if s.GpuType != nil {
			o.Allocated.GPU.Model = string(*s.GpuType)
		}
	}
	rests := []api.SandboxState{api.SandboxStateStopping, api.SandboxStateStopped, api.SandboxStateArchiving, api.SandboxStateArchived}
	if b.vm {
		rests = []api.SandboxState{api.SandboxStatePausing, api.SandboxStatePaused}
	}
	switch state := s.state(); {
	case slices.Contains(rests, state):
		o.Phase = extensions.PhasePaused
	case s.at(api.SandboxStateStarted, api.SandboxStateResizing, api.SandboxStateSnapshotting, api.SandboxStateForking):
		o.Phase, o.Reachability = extensions.PhaseReady, extensions.Reachability{WorkDir: s.Labels[labelWorkDir]}
	case s.at(api.SandboxStateCreating, api.SandboxStateRestoring, api.SandboxStateStarting, api.SandboxStatePendingBuild,
		api.SandboxStateBuildingSnapshot, api.SandboxStatePullingSnapshot, api.SandboxStateResuming):
		o.Phase = extensions.PhaseProvisioning
	case s.at(api.SandboxStateUnknown):
		o.Phase, o.Reason = extensions.PhaseUnreachable, vendor+" does not know its state"
		o.Err = failed("status", id, extensions.Errorf(extensions.KindUnavailable, "%s does not know the state of %s", vendor, s.Id))
	case s.at(api.SandboxStateDestroying):
		o.Phase, o.Reason = extensions.PhaseFailed, vendor+" destroys it"
		if !o.Deadline.IsZero() && !time.Now().Before(o.Deadline) {
			o.Phase = extensions.PhaseExpired
		}
	case s.at(api.SandboxStateError, api.SandboxStateBuildFailed):
		o.Phase, o.Reason = extensions.PhaseFailed, cmp.Or(extensions.Clean(value(s.ErrorReason), 400), "it failed at "+vendor)
	default:
		o.Phase, o.Reason = extensions.PhaseFailed, "it was stopped at "+vendor+" ("+extensions.Clean(string(state), 40)+"), and what ran is gone"
	}
	return o
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// stamp reads one of the vendor's times; zero if there is none.
func stamp(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Find implements extensions.Backend: the vendor's name of a sandbox is its id.
func (b *backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return extensions.Handle{}, failed("find", "", err)
	}
	s, err := b.owned(ctx, handle(id, ""))
	if extensions.IsKind(err, extensions.KindConflict) {
		err = extensions.Errorf(extensions.KindNotFound, "another sandbox at %s has its name", vendor)
	}
	if extensions.IsKind(err, extensions.KindNotFound) && b.vm {
		if _, err = b.kept(ctx, forkName(id)); err == nil { // what is left of a fork that was never made
			return handle(id, ""), nil
		}
	}
	if err != nil {
		return extensions.Handle{}, failed("find", id, err)
	}
	return handle(id, s.Id), nil
}
