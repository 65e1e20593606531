package modal

import (
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
)

// tell says what s is. The vendor keeps nothing of a sandbox that has ended but how it did, and its tags, which say when its time
// is up.
func tell(s seen) byname.Told {
	t := byname.Told{Observation: extensions.Observation{ID: s.id, Handle: handle(s.id, s.ref), Generation: s.generation}}
	if s.result == nil {
		t.Phase, t.Deadline, t.Reachability = extensions.PhaseReady, s.ends, extensions.Reachability{WorkDir: s.workDir}
		return t
	}
	t.Ended = ending(s.result)
	t.Phase, t.Reason = extensions.PhaseAbsent, t.Ended
	switch s.result.GetStatus() { //nolint:exhaustive // the others were wanted
	case pb.GenericResult_GENERIC_STATUS_TIMEOUT:
		t.EndedAt = s.ends
	case pb.GenericResult_GENERIC_STATUS_FAILURE, pb.GenericResult_GENERIC_STATUS_INIT_FAILURE,
		pb.GenericResult_GENERIC_STATUS_INTERNAL_FAILURE, pb.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION:
		t.Phase = extensions.PhaseFailed
	}
	return t
}

// ending says how a sandbox ended.
func ending(r *pb.GenericResult) string {
	switch r.GetStatus() { //nolint:exhaustive // the others have words of their own
	case pb.GenericResult_GENERIC_STATUS_TIMEOUT:
		return "its time was up"
	case pb.GenericResult_GENERIC_STATUS_IDLE_TIMEOUT:
		return vendor + " ended it because it was idle"
	case pb.GenericResult_GENERIC_STATUS_TERMINATED:
		return "it was terminated"
	case pb.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION:
		return vendor + " ended it because memory ran out"
	}
	return extensions.Clean(r.GetStatus().String()+" "+r.GetException(), grpcline.MaxWords)
}
