package modal

import (
	"errors"
	"time"

	sdk "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/status"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
)

const maxWords = grpcline.MaxWords // characters of the vendor's text in a message

// failed is extensions.Failed: package grpcline has classified what the vendor answered, and ofSDK what its SDK made of that.
func failed(op string, id extensions.ID, err error) error {
	return extensions.Failed(op, id, err, ofSDK)
}

// named is failed for the result of a verb that returns.
func named(op string, id extensions.ID, err *error) { *err = failed(op, id, *err) }

// known is err, or what an error of the SDK's own means.
func known(err error) error {
	if err != nil && extensions.KindOf(err) == extensions.KindInternal {
		if e := ofSDK(err); e != nil {
			return e
		}
	}
	return err
}

// ofSDK says what the SDK's own errors mean. It makes some of them of an answer's code, which it forgets.
func ofSDK(err error) *extensions.Error {
	is := func(kind extensions.Kind, remedy string) *extensions.Error {
		return extensions.Errorf(kind, "%s: %s", vendor, extensions.Clean(err.Error(), maxWords)).WithRemedy("%s", remedy)
	}
	switch {
	case as[sdk.NotFoundError](err):
		return is(extensions.KindNotFound, "")
	case as[sdk.AlreadyExistsError](err), as[sdk.ConflictError](err):
		return is(extensions.KindConflict, "")
	case as[sdk.ResourceExhaustedError](err):
		return is(extensions.KindExhausted, "choose another place, or try again later")
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

// effect reports the calls whose lost answer leaves open whether something was done. An app, an image and a secret of the
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

// throttled reads when the vendor wants to be asked again.
func throttled(st *status.Status) (time.Duration, bool) {
	for _, d := range st.Details() {
		if p, ok := d.(*pb.RPCRetryPolicy); ok {
			return time.Duration(max(float64(p.GetRetryAfterSecs()), 0.1) * float64(time.Second)), true
		}
	}
	return 0, false
}

// maybe reports whether a failed call may have had its effect.
func maybe(err error) bool {
	return extensions.IsKind(err, extensions.KindIndeterminate) || extensions.IsKind(err, extensions.KindTimeout)
}
