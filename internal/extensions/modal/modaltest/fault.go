package modaltest

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
)

// When says whether a call has had its effect.
type When int

// When a fault strikes.
const (
	Before When = iota // nothing has happened yet
	After              // it has all happened, and its answer is lost
	Never              // it happens, and its answer is another one: Change
)

// Fault is a failure of a call.
type Fault struct {
	On    string // the call's short name; "" = each one
	When  When
	Times int   // how often; 0 = once, below 0 = until the test ends
	Err   error // what is answered; nil breaks the connection
	// Change changes the answer; with Never only.
	Change func(answer proto.Message)
	// Skip lets so many calls through first.
	Skip int
}

// Inject lets a fault strike calls from now on.
func (v *Vendor) Inject(f Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	v.faults = append(v.faults, &f)
}

func (v *Vendor) fault(method string) *Fault {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range v.faults {
		if f.Times == 0 || f.On != "" && f.On != method {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		f.Times--
		return f
	}
	return nil
}

func (f *Fault) strike(of *front) error {
	if f.Err != nil {
		return f.Err
	}
	of.sever()
	return status.Error(codes.Unavailable, "nobody hears this")
}

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
var SamePage = Fault{On: "SandboxListV2", When: Never, Times: -1, Change: func(answer proto.Message) {
	page := answer.(*pb.SandboxListResponse)
	page.SetSandboxes(append(page.GetSandboxes(), pb.SandboxInfo_builder{Id: "sb-again", CreatedAt: 1}.Build()))
}}
