package extensions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is the class of a failure; it alone decides what the engine does next.
// Kinds are stored in ledgers and handles: append only, never rename.
type Kind string

const (
	// KindInvalid: the request is wrong. Stop; nothing was made.
	KindInvalid Kind = "invalid"
	// KindUnauthorized: a credential is missing, wrong or not allowed. Stop.
	KindUnauthorized Kind = "unauthorized"
	// KindNotFound: proved absent. Success on teardown.
	KindNotFound Kind = "not_found"
	// KindConflict: something else holds the name, the lock or the object. Stop.
	KindConflict Kind = "conflict"
	// KindIndeterminate: it may or may not have happened. Hold, settle by
	// Find; no fallback and no retry before that.
	KindIndeterminate Kind = "indeterminate"
	// KindExhausted: no room or quota here; nothing was made. Next candidate.
	KindExhausted Kind = "exhausted"
	// KindUnavailable: refused for now; nothing was made. Retry, then next candidate.
	KindUnavailable Kind = "unavailable"
	// KindUnreachable: could not ask, and nothing that could take effect was
	// sent. Retry; then the next candidate for a create of which nothing may have
	// arrived, else stop and keep what is known. Who cannot tell whether a request
	// arrived answers KindIndeterminate.
	KindUnreachable Kind = "unreachable"
	// KindTimeout: a deadline passed. Keep the handle.
	KindTimeout Kind = "timeout"
	// KindUnsupported: this place cannot do that. Name places that can.
	KindUnsupported Kind = "unsupported"
	// KindInternal: a defect of ours, or an answer nobody planned for.
	KindInternal Kind = "internal"
	// KindInterrupted: the caller gave up; what had been made was removed or is
	// kept with its id. Stop.
	KindInterrupted Kind = "interrupted"
	// KindFailed: the place did what was asked, and what runs in the sandbox
	// failed: a service ended or is unhealthy. Stop; no other place mends it.
	KindFailed Kind = "failed"
)

// ErrElsewhere is wrapped by an Error of KindUnreachable about a handle of
// another machine or state folder. Nothing can be asked of it from here, and
// nothing is wrong with it: that place ends it at its deadline by itself.
var ErrElsewhere = errors.New("nothing can be asked of it from here")

// Error is the only error type that crosses the contract. Its text never
// contains a secret and never raw bytes from a remote side (see Clean).
type Error struct {
	Kind Kind
	// Op is the contract's verb: "provision", "exec", ...
	Op string
	// Extension is the binding's id, set by the engine where the adapter left it empty.
	Extension string
	// ID is the sandbox concerned, empty where there is none.
	ID ID
	// Field is the argument at fault, for KindInvalid: "ttl", "inputs.repo".
	// Empty where it is the request as a whole.
	Field string
	// Remedy says what to do next, in the imperative; empty where Kind says it all.
	Remedy string
	// RetryAfter is the wait the backend asked for; zero where it did not.
	RetryAfter time.Duration
	// Err says what happened, to what.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	for _, part := range []string{e.Extension, e.Op, string(e.ID)} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString(string(e.Kind))
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error of the kind; %w wraps as in fmt.Errorf.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Invalid makes a KindInvalid error with what to do about it; args belong to
// format.
func Invalid(format, remedy string, args ...any) *Error {
	return Errorf(KindInvalid, format, args...).WithRemedy("%s", remedy)
}

// AtField names the argument at fault where err, which may be nil, does not yet.
func AtField(field string, err error) error {
	if err == nil || FieldOf(err) != "" {
		return err
	}
	return (&Error{Kind: KindOf(err), Remedy: RemedyOf(err), Err: err}).At(field)
}

// WithRemedy sets what to do next and returns the error.
func (e *Error) WithRemedy(format string, args ...any) *Error {
	e.Remedy = fmt.Sprintf(format, args...)
	return e
}

// At names the argument at fault and returns the error.
func (e *Error) At(field string) *Error {
	e.Field = field
	return e
}

// Failed gives err the contract's type, the verb and the sandbox it concerns,
// where it does not say them itself; an id that is none is left out. What is no
// Error yet has the kind of KindOf; where that is KindInternal, classify, which
// may be nil, may know better. Each adapter's own classify is in its errors.go.
func Failed(op string, id ID, err error, classify func(error) *Error) error {
	if err == nil {
		return nil
	}
	told := Error{Kind: KindOf(err), Err: err}
	var known *Error
	switch {
	case errors.As(err, &known):
		told = *known
	case told.Kind == KindInternal && classify != nil:
		if known = classify(err); known != nil {
			told = *known
		}
	}
	told.Op = cmp.Or(told.Op, op)
	if _, bad := ParseID(string(id)); bad == nil {
		told.ID = cmp.Or(told.ID, id)
	}
	return &told
}

// KindOf finds the kind of err: that of the outermost Error in its chain,
// KindTimeout for a passed deadline, KindIndeterminate for a cancelled call
// (whether it took effect is unknown), else KindInternal. Empty for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	case errors.Is(err, context.Canceled):
		return KindIndeterminate
	}
	return KindInternal
}

// IsKind reports whether err is of the kind.
func IsKind(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// RemedyOf returns the first remedy in err's chain, or "".
func RemedyOf(err error) string { return first(err, func(e *Error) string { return e.Remedy }) }

// FieldOf returns the first field named in err's chain, or "".
func FieldOf(err error) string { return first(err, func(e *Error) string { return e.Field }) }

// first returns what the outermost Error of err's chain says that says it.
func first(err error, said func(*Error) string) string {
	var e *Error
	for ; errors.As(err, &e); err = e.Err {
		if text := said(e); text != "" {
			return text
		}
	}
	return ""
}
