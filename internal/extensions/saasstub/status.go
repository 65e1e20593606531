package saasstub

import (
	"context"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// Status implements extensions.Backend with one call for all.
func (b *backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles == nil {
		return b.list(ctx)
	}
	out := make([]extensions.Observation, len(handles))
	var refs []string
	var at []int
	for i, h := range handles {
		out[i] = extensions.Observation{ID: h.ID, Handle: h}
		ref, err := b.ref(ctx, h)
		switch {
		case extensions.IsKind(err, extensions.KindNotFound):
			out[i].Phase = extensions.PhaseAbsent
		case err != nil:
			out[i].Phase, out[i].Reason, out[i].Err = extensions.PhaseUnreachable, "it could not be looked up", failed("status", h.ID, err)
		default:
			refs, at = append(refs, ref), append(at, i)
		}
	}
	if len(refs) == 0 {
		return out, nil
	}
	objs, now, err := b.client.Get(ctx, refs...)
	for n, i := range at {
		h := handles[i]
		switch {
		case err != nil:
			out[i].Phase, out[i].Reason, out[i].Err = extensions.PhaseUnreachable, "the vendor did not answer", failed("status", h.ID, err)
		case objs[n] == nil || objs[n].Labels[extensions.LabelID] != string(h.ID):
			out[i].Phase = extensions.PhaseAbsent
		default:
			out[i] = b.observe(*objs[n], now)
		}
	}
	return out, nil
}

func (b *backend) list(ctx context.Context) ([]extensions.Observation, error) {
	objs, now, err := b.client.List(ctx)
	if err != nil {
		return nil, failed("status", "", err)
	}
	out := []extensions.Observation{}
	for _, o := range objs {
		if _, err := extensions.ParseID(o.Labels[extensions.LabelID]); err == nil {
			out = append(out, b.observe(o, now))
		}
	}
	return out, nil
}

func (b *backend) observe(o vendor.Object, now time.Time) extensions.Observation {
	id := extensions.ID(o.Labels[extensions.LabelID])
	out := extensions.Observation{ID: id, Handle: b.handle(id, o.Ref), Generation: generation(&o), Reason: o.Reason,
		StartedAt: o.CreatedAt, EndedAt: o.EndedAt, Deadline: o.Deadline}
	switch {
	case o.State == vendor.StateExpired:
		out.Phase = extensions.PhaseExpired
	case o.State == vendor.StateFailed:
		out.Phase = extensions.PhaseFailed
	case o.State == vendor.StateCreated || now.Before(o.ReadyAt):
		out.Phase = extensions.PhaseProvisioning
	default:
		out.Phase = extensions.PhaseReady
		out.Reachability = extensions.Reachability{WorkDir: vendor.WorkDir}
		if o.NoAccess {
			out.Reachability.WorkDir = ""
		}
	}
	return out
}

func generation(o *vendor.Object) int64 {
	n, err := strconv.ParseInt(o.Labels[extensions.LabelGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Find implements extensions.Backend.
func (b *backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return extensions.Handle{}, failed("find", "", err)
	}
	obj, err := b.client.Find(ctx, string(id))
	switch {
	case err != nil:
		return extensions.Handle{}, failed("find", id, err)
	case obj != nil && obj.Labels[extensions.LabelID] == string(id):
		return b.handle(id, obj.Ref), nil
	case b.desc.Find.Strength == extensions.FindStrong:
		return extensions.Handle{}, failed("find", id, extensions.Errorf(extensions.KindNotFound, "the vendor has no such sandbox"))
	}
	return extensions.Handle{}, failed("find", id, extensions.Errorf(extensions.KindIndeterminate,
		"the vendor's list does not show it; new sandboxes can be missing for %s", b.desc.Find.Settle))
}
