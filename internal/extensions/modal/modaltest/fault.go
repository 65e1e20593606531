package modaltest

import (
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
)

// Throttled is the vendor's refusal of a call that comes too soon.
func Throttled(seconds float32) error {
	s, err := status.New(codes.ResourceExhausted, "Rate limit exceeded").
		WithDetails(pb.RPCRetryPolicy_builder{RetryAfterSecs: seconds}.Build())
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// SamePage makes every list end at the same time again and again.
var SamePage = grpctest.Fault{On: "SandboxListV2", When: grpctest.Never, Times: -1, Change: func(answer proto.Message) {
	page := answer.(*pb.SandboxListResponse)
	page.SetSandboxes(append(page.GetSandboxes(), pb.SandboxInfo_builder{Id: "sb-again", CreatedAt: 1}.Build()))
}}
