package modal

import (
	"context"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/looks"
)

// Status implements extensions.Backend. A list may lag, so each handle's sandbox is asked for by its name.
func (b *backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles != nil {
		return looks.Each(ctx, vendor, handles, b.look), nil
	}
	all, err := b.list(ctx)
	out := make([]extensions.Observation, 0, len(all))
	for _, s := range all {
		out = append(out, observe(s))
	}
	return out, failed("status", "", err)
}

func (b *backend) look(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	s, err := b.its(ctx, h)
	return observe(s), err
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
func (b *backend) Find(ctx context.Context, id extensions.ID) (h extensions.Handle, err error) {
	defer named("find", id, &err)
	s, err := b.its(ctx, handle(id, ""))
	if err != nil {
		return h, err
	}
	return handle(id, s.ref), nil
}
