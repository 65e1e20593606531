package modaltest

import (
	"cmp"
	"context"
	"slices"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
)

// SandboxList implements pb.ModalClientServer: V1's sandboxes only.
func (p plane) SandboxList(_ context.Context, in *pb.SandboxListRequest) (*pb.SandboxListResponse, error) {
	return p.list(in, func(s *sandbox) bool { return s.backend == 1 })
}

// SandboxListV2 implements pb.ModalClientServer: those of both backends.
func (p plane) SandboxListV2(_ context.Context, in *pb.SandboxListRequest) (*pb.SandboxListResponse, error) {
	return p.list(in, func(*sandbox) bool { return true })
}

func (p plane) list(in *pb.SandboxListRequest, of func(*sandbox) bool) (*pb.SandboxListResponse, error) {
	if in.GetAppId() == "" {
		return nil, refuse(codes.InvalidArgument, "no app")
	}
	p.v.mu.Lock()
	delay, size := p.v.listDelay, p.v.pageSize
	p.v.mu.Unlock()
	late := p.v.clock.Now().Add(-delay)
	var found []*pb.SandboxInfo
	for _, s := range p.v.all() {
		there := s.made.Before(late) || delay == 0
		gone := !s.lives() && (delay == 0 || s.over.Before(late))
		at := float64(s.made.UnixMicro()) / 1e6
		if !there || gone || s.app != in.GetAppId() || !of(s) || in.GetBeforeTimestamp() != 0 && at >= in.GetBeforeTimestamp() {
			continue
		}
		p.v.mu.Lock()
		tags := slices.Clone(s.tags)
		p.v.mu.Unlock()
		if !hasAll(tags, in.GetTags()) {
			continue
		}
		found = append(found, pb.SandboxInfo_builder{Id: s.id, CreatedAt: at, AppId: s.app, Tags: tags, Name: s.asked.GetName(),
			ImageId: s.asked.GetImageId(), TimeoutSecs: s.asked.GetTimeoutSecs()}.Build())
	}
	slices.SortFunc(found, func(a, b *pb.SandboxInfo) int { return cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()) })
	return pb.SandboxListResponse_builder{Sandboxes: found[:min(size, len(found))]}.Build(), nil
}

func hasAll(has, want []*pb.SandboxTag) bool {
	for _, w := range want {
		if !slices.ContainsFunc(has, func(t *pb.SandboxTag) bool {
			return t.GetTagName() == w.GetTagName() && t.GetTagValue() == w.GetTagValue()
		}) {
			return false
		}
	}
	return true
}
