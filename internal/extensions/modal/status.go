package modal

import (
	"context"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// looks is how many sandboxes are looked at side by side.
const looks = 8

// Status implements extensions.Backend. A list may lag, so each handle's sandbox is asked for by its name.
func (b *backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles == nil {
		out, err := b.everything(ctx)
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

func (b *backend) look(ctx context.Context, h extensions.Handle) extensions.Observation {
	o := extensions.Observation{ID: h.ID, Handle: h}
	ref, err := b.ref(ctx, h)
	var s seen
	if err == nil {
		s, err = b.get(ctx, ref)
	}
	switch {
	case err == nil && s.id == h.ID:
		return observe(s)
	case err == nil, extensions.IsKind(err, extensions.KindNotFound), extensions.IsKind(err, extensions.KindConflict):
		o.Phase = extensions.PhaseAbsent
	default:
		o.Phase, o.Reason, o.Err = extensions.PhaseUnreachable, vendor+" did not tell", failed("status", h.ID, err)
	}
	return o
}

func (b *backend) everything(ctx context.Context) ([]extensions.Observation, error) {
	all, err := b.list(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]extensions.Observation, 0, len(all))
	for _, s := range all {
		out = append(out, observe(s))
	}
	return out, nil
}

// observe says what s is. The vendor keeps nothing of a sandbox that has ended but how it did.
func observe(s seen) extensions.Observation {
	o := extensions.Observation{ID: s.id, Handle: handle(s.id, s.ref), Generation: s.generation}
	switch {
	case s.result == nil:
		o.Phase, o.Deadline, o.Reachability = extensions.PhaseReady, s.ends, extensions.Reachability{WorkDir: s.workDir}
	case broken(s.result):
		o.Phase, o.Reason = extensions.PhaseFailed, ending(s.result)
	default:
		o.Phase, o.Reason = extensions.PhaseAbsent, ending(s.result)
	}
	return o
}

// broken reports an end that nobody wanted.
func broken(r *pb.GenericResult) bool {
	switch r.GetStatus() { //nolint:exhaustive // the others were wanted
	case pb.GenericResult_GENERIC_STATUS_FAILURE, pb.GenericResult_GENERIC_STATUS_INIT_FAILURE,
		pb.GenericResult_GENERIC_STATUS_INTERNAL_FAILURE, pb.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION:
		return true
	}
	return false
}

// Find implements extensions.Backend.
func (b *backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h, err := b.find(ctx, id)
	return h, failed("find", id, err)
}

func (b *backend) find(ctx context.Context, id extensions.ID) (h extensions.Handle, err error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return h, err
	}
	ref, err := b.named(ctx, id)
	if err != nil {
		return h, err
	}
	switch s, err := b.get(ctx, ref); {
	case err != nil:
		return h, err
	case s.id != id:
		return h, foreign(ref)
	}
	return handle(id, ref), nil
}
