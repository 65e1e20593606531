package e2b

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/looks"
)

// Status implements extensions.Backend. A listing may lag, so what it does not show, or shows past its end, is
// looked at by name: only that proves absence.
func (b *backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles == nil {
		out, err := b.everything(ctx)
		return out, failed("status", "", err)
	}
	listed := map[string]*api.SandboxDetail{}
	if len(handles) > looks.AtOnce { // a listing costs less
		all, err := b.list(ctx, extensions.LabelAccount, b.account)
		if err != nil {
			return nil, failed("status", "", err)
		}
		for i, d := range all {
			if time.Now().Before(d.EndAt) || d.State == api.Paused {
				listed[d.SandboxID] = &all[i]
			}
		}
	}
	return looks.Each(ctx, vendor, handles, func(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
		return b.look(ctx, h, listed[h.Ref])
	}), nil
}

// look observes one sandbox; d is what a listing told of it, or nil.
func (b *backend) look(ctx context.Context, h extensions.Handle, d *api.SandboxDetail) (o extensions.Observation, err error) {
	err = h.CheckRef(Handler, handleVersion, refName)
	if d != nil {
		if id, ok := b.ours(d.Metadata); !ok || id != h.ID {
			d = nil
		}
	}
	if err == nil && d == nil {
		d, err = b.owned(ctx, h)
	}
	if err == nil {
		o = b.observe(h.ID, d)
	}
	return o, err
}

func (b *backend) everything(ctx context.Context) ([]extensions.Observation, error) {
	all, err := b.list(ctx, extensions.LabelAccount, b.account)
	if err != nil {
		return nil, err
	}
	out := make([]extensions.Observation, 0, len(all))
	for _, d := range all {
		if id, ok := b.ours(d.Metadata); ok {
			out = append(out, b.observe(id, &d))
		}
	}
	return out, nil
}

func (b *backend) observe(id extensions.ID, d *api.SandboxDetail) extensions.Observation {
	cpu, memory, disk := extensions.Milli(d.CpuCount)*1000, int64(d.MemoryMB), int64(d.DiskSizeMB)
	o := extensions.Observation{ID: id, Handle: handle(id, d.SandboxID), Generation: generation(d.Metadata), StartedAt: d.StartedAt,
		Allocated: extensions.Resources{CPU: &cpu, MemoryMB: &memory, DiskMB: &disk}}
	if d.State == api.Paused { // its time at the vendor stands still since then
		o.Phase, o.Since = extensions.PhasePaused, d.EndAt
		return o
	}
	o.Phase, o.Deadline = extensions.PhaseReady, d.EndAt
	o.Reachability = extensions.Reachability{WorkDir: workDir(d.Metadata)}
	return o
}

// Find implements extensions.Backend. What is left of a fork that was never made has a handle without a name.
func (b *backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h, err := b.find(ctx, id)
	if extensions.IsKind(err, extensions.KindIndeterminate) {
		if kept, lost := b.keptFork(ctx, id); lost == nil && kept != "" {
			return handle(id, ""), nil
		}
	}
	return h, err
}

func (b *backend) find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return extensions.Handle{}, failed("find", "", err)
	}
	found, err := b.withID(ctx, id)
	switch {
	case err != nil:
		return extensions.Handle{}, failed("find", id, err)
	case len(found) > 0:
		return handle(id, found[0].SandboxID), nil
	}
	return extensions.Handle{}, failed("find", id, extensions.Errorf(extensions.KindIndeterminate,
		"%s does not list it; a new sandbox can be missing for %s", vendor, b.desc.Find.Settle))
}
