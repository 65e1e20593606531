package grpcline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// MaxWords is the longest text of the other side in a message, in characters.
const MaxWords = 300

// answer is what the place said, cleaned for messages; whoever needs the code reads it of what it wraps.
type answer struct {
	said string
	err  error
}

func (a *answer) Error() string { return a.said }

// Unwrap implements the interface of package errors.
func (a *answer) Unwrap() error { return a.err }

// Unsent is the error of a call that a canceled context stopped before anything was sent.
func (l *Line) Unsent(err error) error {
	return fmt.Errorf("nothing was sent to %s: %w", l.Vendor, err)
}

// classified is the error of a call. Only here is decided what a code means.
func (l *Line) classified(ctx context.Context, method string, of *sent, err error) error {
	var known *extensions.Error
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &known) {
		return err
	}
	st := status.Convert(err)
	said := &answer{said: l.Words(st.Message()), err: st.Err()}
	told := func(kind extensions.Kind, remedy string) error {
		return extensions.Errorf(kind, "%s answered %s: %w", l.Vendor, st.Code(), said).WithRemedy("%s", remedy)
	}
	if l.Soon != nil {
		if wait, ok := l.Soon(method, st); ok {
			e := extensions.Errorf(extensions.KindUnavailable, "%s limits calls: %w", l.Vendor, said).
				WithRemedy("try again later, or create fewer at once (terraform apply -parallelism)")
			e.RetryAfter = wait
			return e
		}
	}
	switch st.Code() { //nolint:exhaustive // the others say nothing certain
	case codes.Unauthenticated, codes.PermissionDenied:
		return told(extensions.KindUnauthorized, l.Refused)
	case codes.NotFound:
		return told(extensions.KindNotFound, "")
	case codes.AlreadyExists, codes.FailedPrecondition:
		return told(extensions.KindConflict, "")
	case codes.InvalidArgument, codes.OutOfRange:
		return told(extensions.KindInvalid, "")
	case codes.ResourceExhausted:
		return told(extensions.KindExhausted, l.Full)
	case codes.Unimplemented:
		return told(extensions.KindUnsupported, "")
	}
	switch {
	case of.left.Load() && l.Effect(method):
		return extensions.Errorf(extensions.KindIndeterminate, "it is unknown whether %s did it: %w", l.Vendor, said)
	case ctx.Err() != nil:
		return extensions.Errorf(extensions.KindOf(ctx.Err()), "no answer from %s: %w", l.Vendor, ctx.Err())
	case of.answered.Load():
		return told(extensions.KindUnavailable, "try again later")
	}
	return extensions.Errorf(extensions.KindUnreachable, "%s does not answer: %w", l.Vendor, said).
		WithRemedy("check the network, and the address if you changed it")
}

// Words makes the other side's text fit a message: short, without control characters or the account's secrets.
func (l *Line) Words(text string) string {
	for _, s := range l.Secrets {
		text = strings.ReplaceAll(text, s, "…")
	}
	return strings.TrimSpace(extensions.Clean(text, MaxWords))
}
