package vercel

import (
	"cmp"
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/looks"
)

// Status implements extensions.Backend. Each handle is looked up by its name: a listing does not tell of the sessions, and
// may lag.
func (b *backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles == nil {
		out, err := b.everything(ctx)
		return out, failed("status", "", err)
	}
	return looks.Each(ctx, vendor, handles, func(ctx context.Context, h extensions.Handle) (o extensions.Observation, err error) {
		w, err := b.owned(ctx, h)
		if err == nil {
			o = b.observe(h.ID, w)
		}
		return o, err
	}), nil
}

func (b *backend) everything(ctx context.Context) ([]extensions.Observation, error) {
	all, err := b.list(ctx)
	if err != nil {
		return nil, err
	}
	out, seen := make([]extensions.Observation, 0, len(all)), map[extensions.ID]bool{}
	for _, s := range all {
		has, ok := b.ours(s)
		id := extensions.ID(has[extensions.LabelID])
		if !ok || s.Name != string(id) || seen[id] { // what moves to a later page is listed twice
			continue
		}
		seen[id] = true
		// A session's own times are not listed.
		out = append(out, b.observe(id, &whole{Sandbox: s, Session: session{Status: s.Status, VCPUs: s.VCPUs, Memory: s.Memory,
			StoppedAt: s.StatusUpdatedAt}}))
	}
	return out, nil
}

// early is how long before its deadline a sandbox counts as ended by it: the vendor's clocks differ by less.
const early = 5 * time.Second

func (b *backend) observe(id extensions.ID, w *whole) extensions.Observation {
	has, _ := b.ours(w.Sandbox)
	s := w.Session
	o := extensions.Observation{ID: id, Handle: handle(id), Generation: labels.Generation(has), StartedAt: at(s.StartedAt),
		Allocated: allocated(s)}
	deadline := at(w.Sandbox.ExpiresAt)
	if !o.StartedAt.IsZero() {
		deadline = o.StartedAt.Add(time.Duration(s.Timeout) * time.Millisecond)
	}
	switch s.Status {
	case pending:
		o.Phase = extensions.PhaseProvisioning
	case running, snapshotting:
		o.Phase, o.Deadline, o.Reachability.WorkDir = extensions.PhaseReady, deadline, b.dir(w.Sandbox)
	case stopping, stopped:
		if o.EndedAt = ended(s); o.EndedAt.IsZero() {
			o.EndedAt = deadline
		}
		if o.Phase = extensions.PhaseExpired; !deadline.IsZero() && deadline.Sub(o.EndedAt) > early {
			o.Phase, o.Reason = extensions.PhaseFailed, "it was stopped before its deadline"
			if has[labelSnapshot] != "" {
				o.Reason = "its snapshot " + extensions.Clean(has[labelSnapshot], 40) + " ended it"
			}
		}
	default:
		o.Phase, o.EndedAt, o.Reason = extensions.PhaseFailed, ended(s), vendor+" says "+extensions.Clean(s.Status, 40)
	}
	return o
}

// ended is when a session ended; zero while it has not.
func ended(s session) time.Time { return at(cmp.Or(s.StoppedAt, s.AbortedAt, s.RequestedStopAt)) }

func allocated(s session) (r extensions.Resources) {
	if s.VCPUs > 0 {
		cpu := extensions.Milli(s.VCPUs * 1000)
		r.CPU = &cpu
	}
	if s.Memory > 0 {
		memory := int64(s.Memory)
		r.MemoryMB = &memory
	}
	return r
}

// Find implements extensions.Backend. A sandbox has the name of its id, so it is looked up by it.
func (b *backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h := handle(id)
	if _, err := b.owned(ctx, h); err != nil {
		return extensions.Handle{}, failed("find", id, err)
	}
	return h, nil
}
