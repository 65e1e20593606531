package modaltest

import (
	"context"
	"slices"
	"strings"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// front is one way to the vendor: both of its servers.
type front struct {
	*grpctest.Front
	v                   *Vendor
	planeURL, routerURL string
}

func (v *Vendor) newFront(k *vendortest.Killer) *front {
	f := &front{Front: v.Front(k), v: v}
	f.planeURL = f.Serve(nil, func(s *grpc.Server) { pb.RegisterModalClientServer(s, plane{v: v, f: f}) })
	f.routerURL = f.Serve(nil, func(s *grpc.Server) { pb.RegisterTaskCommandRouterServer(s, router{v: v}) })
	return f
}

// router is how its routers are told of.
func (f *front) router() string {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	if f.v.secure {
		return strings.Replace(f.routerURL, "http://", "https://", 1)
	}
	return f.routerURL
}

// admit lets in who has the workspace's token, and for all but the session's token that one too.
func (v *Vendor) admit(ctx context.Context, full string) error {
	if !strings.HasPrefix(full, "/modal.client.") {
		return nil // routers have tokens of their own
	}
	header, _ := metadata.FromIncomingContext(ctx)
	// The vendor's own SDK sends its fields twice where it fetches a session on the way of another call.
	has := func(name, value string) bool {
		got := slices.Compact(slices.Clone(header.Get(name)))
		return len(got) == 1 && got[0] == value
	}
	for _, name := range []string{"x-modal-client-type", "x-modal-client-version", "x-modal-libmodal-version"} {
		if len(header.Get(name)) == 0 {
			return status.Errorf(codes.InvalidArgument, "no %s", name)
		}
	}
	if !has("x-modal-token-id", v.TokenID) || !has("x-modal-token-secret", v.TokenSecret) {
		return status.Error(codes.Unauthenticated, "Token ID or secret is invalid")
	}
	streams := strings.HasSuffix(full, "Streaming")
	if full != pb.ModalClient_AuthTokenGet_FullMethodName && !streams && !has("x-modal-auth-token", session(v)) {
		return status.Error(codes.Unauthenticated, "no valid auth token")
	}
	return nil
}
