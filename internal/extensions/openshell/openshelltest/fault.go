package openshelltest

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
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
func (g *Gateway) Inject(f Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	g.faults = append(g.faults, &f)
}

func (g *Gateway) fault(method string) *Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.faults {
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
