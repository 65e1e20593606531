package saasstub

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// Status implements extensions.Backend with one call for all handles.
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
	objs, now, err := b.pages(ctx)
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

// pages reads the vendor's list to its end. One that does not end, or ends before it is whole, is no list.
func (b *backend) pages(ctx context.Context) (all []vendor.Object, now time.Time, err error) {
	broken := func(format string, args ...any) ([]vendor.Object, time.Time, error) {
		return nil, now, extensions.Errorf(extensions.KindUnavailable, format, args...).WithRemedy("try again later; the vendor's list is broken")
	}
	asked := map[string]bool{"": true}
	for token := ""; ; {
		page, err := b.client.List(ctx, token)
		if err != nil {
			return nil, now, err
		}
		all, now, token = append(all, page.Objects...), page.Now, page.Next
		switch {
		case token == "" && len(all) < page.Total:
			return broken("the vendor's list ends after %d of %d sandboxes", len(all), page.Total)
		case token == "":
			return all, now, nil
		case asked[token]:
			return broken("the vendor's list repeats a page")
		}
		asked[token] = true
	}
}

func (b *backend) observe(o vendor.Object, now time.Time) extensions.Observation {
	id := extensions.ID(o.Labels[extensions.LabelID])
	out := extensions.Observation{ID: id, Handle: b.handle(id, o.Ref), Generation: generation(&o), Reason: o.Reason,
		Since: o.Since, EndedAt: o.EndedAt, Deadline: o.Deadline, Idle: o.Idled,
		Allocated: extensions.Resources{CPU: (*extensions.Milli)(&o.MilliCPU), MemoryMB: &o.MemoryMB}}
	if !now.Before(o.BilledAt) {
		out.StartedAt = o.BilledAt
	}
	switch {
	case o.State == vendor.StateExpired:
		out.Phase = extensions.PhaseExpired
	case o.State == vendor.StateEnded:
		out.Phase = extensions.PhaseTerminated
	case o.State == vendor.StateFailed:
		out.Phase = extensions.PhaseFailed
	case o.State == vendor.StatePaused:
		out.Phase = extensions.PhasePaused
		if o.Unending {
			out.Deadline = time.Time{}
		}
	case o.State == vendor.StateCreated || now.Before(o.ReadyAt):
		out.Phase = extensions.PhaseProvisioning
	default:
		out.Phase, out.IdleSince = extensions.PhaseReady, o.IdleSince()
		out.Reachability = extensions.Reachability{WorkDir: vendor.WorkDir}
		if o.NoAccess {
			out.Reachability.WorkDir = ""
		}
	}
	return out
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
