package vendor

import "time"

// Code is the machine-readable part of a Fault.
type Code string

// The codes the service answers with.
const (
	CodeUnauthorized Code = "unauthorized"
	CodeInvalid      Code = "invalid"
	CodeNotFound     Code = "not-found"
	CodeConflict     Code = "conflict"
	CodeNameTaken    Code = "name-taken"
	CodeQuota        Code = "quota"
	CodeNoCapacity   Code = "no-capacity"
	CodeNotOffered   Code = "not-offered"
	CodeThrottled    Code = "throttled"
	CodeUnavailable  Code = "unavailable"
	CodeEnded        Code = "ended"       // the object exists and has ended
	CodePaused       Code = "paused"      // the object is paused, so nothing can be done in it
	CodeNoRoute      Code = "no-route"    // no connection: the request was never sent
	CodeAnswerLost   Code = "answer-lost" // it may have arrived; the answer was lost
)

// Fault is what the service, or the way to it, returns instead of success.
type Fault struct {
	Code       Code
	Message    string
	RetryAfter time.Duration // zero = unknown
	Ref        string        // of the object in the way, for CodeNameTaken
}

func (f *Fault) Error() string { return string(f.Code) + ": " + f.Message }

func fault(code Code, message string) *Fault { return &Fault{Code: code, Message: message} }

var actionFaults = map[Action]*Fault{
	DoUnauthorized: fault(CodeUnauthorized, "the key is not accepted"),
	DoInvalid:      fault(CodeInvalid, "the request is not acceptable"),
	DoQuota:        fault(CodeQuota, "the account's limit is reached"),
	DoNoCapacity:   fault(CodeNoCapacity, "no capacity is left in this region"),
	DoNotOffered:   fault(CodeNotOffered, "the account's plan does not include this"),
	DoThrottle:     fault(CodeThrottled, "too many requests"),
	DoUnavailable:  fault(CodeUnavailable, "the service is down for maintenance"),
	DoConflict:     fault(CodeConflict, "another operation is in progress"),
	DoUnreachable:  fault(CodeNoRoute, "connection refused"),
	DoBadGateway:   fault(CodeAnswerLost, "502 bad gateway"),
}

// before returns the fault that a rule answers with instead of doing anything, or nil.
func (r Rule) before() *Fault {
	f, ok := actionFaults[r.Do]
	if !ok {
		return nil
	}
	out := *f
	out.RetryAfter = time.Duration(r.RetryAfter)
	if r.Message != "" {
		out.Message = r.Message
	}
	return &out
}
