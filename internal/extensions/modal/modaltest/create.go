package modaltest

import (
	"context"
	"net/netip"
	"strings"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
)

// longest is the longest life of a sandbox, in seconds.
const longest = 24 * 60 * 60

// SandboxCreate implements pb.ModalClientServer.
func (p plane) SandboxCreate(_ context.Context, in *pb.SandboxCreateRequest) (*pb.SandboxCreateResponse, error) {
	s, err := p.create(in.GetAppId(), in.GetDefinition(), in.GetTags(), 1)
	if err != nil {
		return nil, err
	}
	return pb.SandboxCreateResponse_builder{SandboxId: s.id}.Build(), nil
}

// SandboxCreateV2 implements pb.ModalClientServer.
func (p plane) SandboxCreateV2(_ context.Context, in *pb.SandboxCreateV2Request) (*pb.SandboxCreateV2Response, error) {
	if in.GetDefinition().GetResources().GetGpuConfig().GetCount() > 0 {
		return nil, refuse(codes.InvalidArgument, "GPUs are not supported")
	}
	s, err := p.create(in.GetAppId(), in.GetDefinition(), in.GetTags(), 2)
	if err != nil {
		return nil, err
	}
	return pb.SandboxCreateV2Response_builder{SandboxId: s.id}.Build(), nil
}

func (p plane) create(app string, want *pb.Sandbox, tags []*pb.SandboxTag, backend int) (*sandbox, error) {
	v := p.v
	v.mu.Lock()
	defer v.mu.Unlock()
	known := false
	for _, id := range v.apps {
		known = known || id == app
	}
	from := v.images[want.GetImageId()]
	switch {
	case !known:
		return nil, refuse(codes.NotFound, "App %s not found", app)
	case from == nil || !from.done:
		return nil, refuse(codes.NotFound, "Image %s not found", want.GetImageId())
	}
	if err := checkDefinition(want, tags); err != nil {
		return nil, err
	}
	live := 0
	for _, s := range v.sandboxes {
		if !s.lives() {
			continue
		}
		live++
		if s.app == app && s.backend == backend && s.asked.GetName() == want.GetName() {
			return nil, refuse(codes.AlreadyExists, "Sandbox with name %s already exists", want.GetName())
		}
	}
	if err := v.room(live); err != nil {
		return nil, err
	}
	s, err := v.newSandbox(app, from, want, tags, backend)
	if err != nil {
		return nil, refuse(codes.Internal, "%v", err)
	}
	return s, nil
}

// room for one more: both of the vendor's meanings of exhausted.
func (v *Vendor) room(live int) error {
	now := v.clock.Now()
	if per := v.plan.CreatesPerSecond; per > 0 {
		first := max(0, len(v.recent)-per)
		if len(v.recent) >= per && now.Sub(v.recent[first]) < time.Second {
			return Throttled(1)
		}
		v.recent = append(v.recent[first:], now)
	}
	if v.plan.Concurrent > 0 && live >= v.plan.Concurrent {
		return refuse(codes.ResourceExhausted, "Workspace limit of %d concurrent sandboxes reached", v.plan.Concurrent)
	}
	return nil
}

// checkDefinition refuses what the vendor does, and what no adapter may leave open.
func checkDefinition(want *pb.Sandbox, tags []*pb.SandboxTag) error {
	bad := func(format string, args ...any) error { return refuse(codes.InvalidArgument, format, args...) }
	net := want.GetNetworkAccess()
	switch r := want.GetResources(); {
	case !objectName.MatchString(want.GetName()):
		return bad("name %q", want.GetName())
	case want.GetTimeoutSecs() == 0 || want.GetTimeoutSecs() > longest:
		return bad("timeout of %d s", want.GetTimeoutSecs())
	case want.HasRuntime() && want.GetRuntime() != "gvisor" && want.GetRuntime() != "vm":
		return bad("runtime %q", want.GetRuntime())
	case r.GetMilliCpuMax() > 0 && r.GetMilliCpuMax() < r.GetMilliCpu(), r.GetMemoryMbMax() > 0 && r.GetMemoryMbMax() < r.GetMemoryMb():
		return bad("a limit below its request")
	case net.GetNetworkAccessType() == pb.NetworkAccess_BLOCKED && len(want.GetOpenPorts().GetPorts()) > 0:
		return bad("open ports while the network is blocked")
	case net.GetNetworkAccessType() == pb.NetworkAccess_UNSPECIFIED:
		return bad("no network access")
	case net.GetNetworkAccessType() != pb.NetworkAccess_ALLOWLIST && len(net.GetAllowedCidrs())+len(net.GetAllowedDomains()) > 0:
		return bad("an allowlist without its mode")
	}
	for _, r := range want.GetSchedulerPlacement().GetRegions() {
		if places[r] == "" || r == anywhere {
			return bad("region %q", r)
		}
	}
	for _, c := range net.GetAllowedCidrs() {
		if _, err := netip.ParsePrefix(c); err != nil {
			return bad("CIDR %q", c)
		}
	}
	for _, d := range net.GetAllowedDomains() {
		if d == "" || strings.ContainsAny(d, ":/ ") {
			return bad("domain %q", d)
		}
	}
	for _, t := range tags {
		name, value := t.GetTagName(), t.GetTagValue()
		if !tagText.MatchString(name) || !tagText.MatchString(value) || len(value) > 63 || len(name) > 63 {
			return bad("tag %q=%q", t.GetTagName(), t.GetTagValue())
		}
	}
	return nil
}
