package modal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const maxWords = 300 // characters of the vendor's text in a message

// failed is extensions.Failed with the errors that the SDK makes of classified ones.
func failed(op string, id extensions.ID, err error) error {
	return extensions.Failed(op, id, err, ofSDK)
}

// ofSDK says what the SDK's own errors mean. It makes some of them of an answer's code, which it forgets.
func ofSDK(err error) *extensions.Error {
	said := extensions.Clean(err.Error(), maxWords)
	is := func(kind extensions.Kind, remedy string) *extensions.Error {
		return extensions.Errorf(kind, "%s: %s", vendor, said).WithRemedy("%s", remedy)
	}
	switch {
	case as[sdk.NotFoundError](err):
		return is(extensions.KindNotFound, "")
	case as[sdk.AlreadyExistsError](err), as[sdk.ConflictError](err):
		return is(extensions.KindConflict, "")
	case as[sdk.ResourceExhaustedError](err):
		return is(extensions.KindExhausted, "choose another place, or try again later")
	case as[sdk.RemoteError](err): // only builds of images end so
		return is(extensions.KindUnsupported, "check the image: it must exist, be public, and be for linux/amd64").At("image")
	case as[sdk.TimeoutError](err):
		return is(extensions.KindTimeout, "")
	case as[sdk.InvalidError](err):
		return is(extensions.KindInvalid, "")
	}
	return nil
}

func as[T error](err error) bool {
	var e T
	return errors.As(err, &e)
}

// answer is what the vendor said, cleaned for messages; the SDK reads the code of what it wraps.
type answer struct {
	said string
	err  error
}

func (a *answer) Error() string { return a.said }

// Unwrap implements the interface of package errors.
func (a *answer) Unwrap() error { return a.err }

func unsent(err error) error { return fmt.Errorf("nothing was sent to %s: %w", vendor, err) }

// effects are the calls whose lost answer leaves open whether something was done. An app, an image and a secret of the
// same content are the same object however often they are asked for.
func effect(method string) bool {
	switch method {
	case pb.ModalClient_SandboxCreate_FullMethodName, pb.ModalClient_SandboxCreateV2_FullMethodName,
		pb.ModalClient_SandboxTerminate_FullMethodName, pb.ModalClient_SandboxTerminateV2_FullMethodName,
		pb.ModalClient_ImagePublish_FullMethodName, pb.ModalClient_ImageDelete_FullMethodName,
		pb.TaskCommandRouter_TaskExecStart_FullMethodName, pb.TaskCommandRouter_TaskSnapshotFilesystem_FullMethodName:
		return true
	}
	return false
}

// classified is the error of a call. Only here is decided what a code means.
func (l *line) classified(ctx context.Context, method string, of *sent, err error) error {
	var known *extensions.Error
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &known) {
		return err
	}
	st := status.Convert(err)
	said := &answer{said: l.words(st.Message()), err: st.Err()}
	told := func(kind extensions.Kind, remedy string) error {
		return extensions.Errorf(kind, "%s answered %s: %w", vendor, st.Code(), said).WithRemedy("%s", remedy)
	}
	if wait, ok := throttled(st); ok {
		e := extensions.Errorf(extensions.KindUnavailable, "%s takes fewer calls: %w", vendor, said).
			WithRemedy("try again later, or make fewer at once (terraform apply -parallelism)")
		e.RetryAfter = wait
		return e
	}
	switch st.Code() { //nolint:exhaustive // the others say nothing certain
	case codes.Unauthenticated, codes.PermissionDenied:
		return told(extensions.KindUnauthorized, "check the token: it is wrong, was revoked, or is not allowed to do this")
	case codes.NotFound:
		return told(extensions.KindNotFound, "")
	case codes.AlreadyExists, codes.FailedPrecondition:
		return told(extensions.KindConflict, "")
	case codes.InvalidArgument, codes.OutOfRange:
		return told(extensions.KindInvalid, "")
	case codes.ResourceExhausted:
		return told(extensions.KindExhausted, "end a sandbox of this workspace, or raise its plan's limit")
	case codes.Unimplemented:
		return told(extensions.KindUnsupported, "")
	}
	switch {
	case of.left.Load() && effect(method):
		return extensions.Errorf(extensions.KindIndeterminate, "whether %s did it is not known: %w", vendor, said)
	case ctx.Err() != nil:
		return extensions.Errorf(extensions.KindOf(ctx.Err()), "%s was not heard: %w", vendor, ctx.Err())
	case of.answered.Load():
		return told(extensions.KindUnavailable, "try again later")
	}
	return extensions.Errorf(extensions.KindUnreachable, "%s does not answer: %w", vendor, said).
		WithRemedy("check the network, and the address if you changed it")
}

// throttled reads when the vendor wants to be asked again.
func throttled(st *status.Status) (time.Duration, bool) {
	for _, d := range st.Details() {
		if p, ok := d.(*pb.RPCRetryPolicy); ok {
			return time.Duration(max(float64(p.GetRetryAfterSecs()), 0.1) * float64(time.Second)), true
		}
	}
	return 0, false
}

// words makes the other side's text fit a message: short, without control characters or the account's keys.
func (l *line) words(text string) string {
	for _, s := range l.secret {
		text = strings.ReplaceAll(text, s, "…")
	}
	return strings.TrimSpace(extensions.Clean(text, maxWords))
}

// maybe reports whether a failed call may have had its effect.
func maybe(err error) bool {
	return extensions.IsKind(err, extensions.KindIndeterminate) || extensions.IsKind(err, extensions.KindTimeout)
}
