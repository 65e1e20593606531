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
	// KindInvalid: the request is wrong. Stop; nothing was created.
	KindInvalid Kind = "invalid"
	// KindUnauthorized: a credential is missing, wrong or not allowed. Stop: a key
	// that has expired must not make another place bill instead.
	KindUnauthorized Kind = "unauthorized"
	// KindNotFound: proved absent. Success on teardown.
	KindNotFound Kind = "not_found"
	// KindConflict: something else holds the name, the lock or the object. Stop.
	KindConflict Kind = "conflict"
	// KindIndeterminate: it may or may not have happened. Decide by Find; no
	// fallback and no retry before that.
	KindIndeterminate Kind = "indeterminate"
	// KindExhausted: no capacity or quota here; nothing was created. Next
	// candidate.
	KindExhausted Kind = "exhausted"
	// KindUnavailable: refused for now; nothing was created. Retry, then next
	// candidate.
	KindUnavailable Kind = "unavailable"
	// KindUnreachable: the place could not be asked, and nothing with an effect was
	// sent. Retry; then try the next candidate if no call of the create can have
	// arrived, else stop and keep the records. Return KindIndeterminate if a
	// request may have arrived.
	KindUnreachable Kind = "unreachable"
	// KindTimeout: a deadline passed. Keep the handle.
	KindTimeout Kind = "timeout"
	// KindUnsupported: this place cannot do that, has no such image, template or
	// region, or the account's plan does not allow it. From Open, CheckSpec, or
	// Provision without a Handle: nothing was made; next candidate. Otherwise stop,
	// and list places that can.
	KindUnsupported Kind = "unsupported"
	// KindInternal: a bug of sandboxer, or an unexpected answer.
	KindInternal Kind = "internal"
	// KindInterrupted: the caller canceled; the sandbox was removed or is kept with
	// its ID. Stop.
	KindInterrupted Kind = "interrupted"
	// KindFailed: the place worked, but a process in the sandbox failed: a service
	// ended or is unhealthy. Stop; another place would not help.
	KindFailed Kind = "failed"
)

// ErrElsewhere is wrapped by an Error of KindUnreachable about a handle of another
// machine, state folder or account of a vendor. It cannot be contacted from here, but
// nothing is wrong with it: its place ends it at its deadline. It is not asked again.
var ErrElsewhere = errors.New("it cannot be contacted from here")

// Error is the only error type that crosses the contract. Its text never
// contains a secret and never raw bytes from a remote side (see Clean).
type Error struct {
	Kind Kind
	// Op is the contract's verb: "provision", "exec", ...
	Op string
	// Extension is the binding's ID; the engine sets it if the adapter left it
	// empty.
	Extension string
	// ID is the sandbox's ID, empty if there is none.
	ID ID
	// Field is the invalid argument, for KindInvalid: "ttl", "inputs.repo". Empty
	// for the whole request.
	Field string
	// Remedy says what to do next, in the imperative; empty if Kind says enough.
	Remedy string
	// RetryAfter is the wait that the backend asked for; zero if none.
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

// Invalid makes a KindInvalid error with a remedy; args belong to format.
func Invalid(format, remedy string, args ...any) *Error {
	return Errorf(KindInvalid, format, args...).WithRemedy("%s", remedy)
}

// AtField sets the invalid argument if err, which may be nil, has none.
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

// At sets the invalid argument and returns the error.
func (e *Error) At(field string) *Error {
	e.Field = field
	return e
}

// Failed gives err the contract's type, the verb and the sandbox's ID, unless it
// has them; an invalid ID is left out. An error of another type gets the kind of
// KindOf; if that is KindInternal, classify, which may be nil, decides. Each
// adapter's classify is in its errors.go.
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
// KindTimeout for a passed deadline, KindIndeterminate for a canceled call
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

// MayBeDone reports whether a failed call may have had its effect.
func MayBeDone(err error) bool { return IsKind(err, KindIndeterminate) || IsKind(err, KindTimeout) }

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

// Classify returns err as an *Error and adds the operation, the extension and the
// sandbox if missing; nil stays nil.
func Classify(op, extension string, id ID, err error) error {
	if err == nil {
		return nil
	}
	out := Error{Kind: KindOf(err), Remedy: RemedyOf(err), Err: err}
	var inner *Error
	switch whole := err.(type) { //nolint:errorlint // only err itself, not what it wraps, may be replaced
	case *Error:
		out = *whole
		out.Op = cmp.Or(out.Op, op)
		out.Extension = cmp.Or(extension, out.Extension) // users know the binding, not the handler
		out.ID = cmp.Or(out.ID, id)
	default:
		if errors.As(err, &inner) {
			out.RetryAfter = inner.RetryAfter
		} else {
			out.Op, out.Extension, out.ID = op, extension, id
		}
	}
	return &out
}
