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

// named is extensions.Failed for the result of a verb that returns: package grpcline has classified what the vendor answered.
func named(op string, id extensions.ID, err *error) { *err = extensions.Failed(op, id, *err, nil) }

// unscheduled says what the SDK finds by itself while it waits for V1's machine. It ends the sandbox then.
func unscheduled(err error) error {
	var full sdk.ResourceExhaustedError
	var ended sdk.ConflictError
	switch {
	case errors.As(err, &full):
		return extensions.Errorf(extensions.KindExhausted, "%s: %s", vendor, extensions.Clean(full.Exception, grpcline.MaxWords)).
			WithRemedy("choose another place, or try again later")
	case errors.As(err, &ended):
		return extensions.Errorf(extensions.KindFailed, "it ended before it started: %s", extensions.Clean(ended.Exception, grpcline.MaxWords))
	}
	return err
}

// refused says what a create's failure means when nothing has the sandbox's name.
func refused(spec extensions.Spec, err error) error {
	switch {
	case extensions.IsKind(err, extensions.KindConflict):
		return extensions.Errorf(extensions.KindUnavailable, "a sandbox that has since ended had its name: %w", err).WithRemedy("try again")
	case extensions.IsKind(err, extensions.KindNotFound) && spec.FromSnapshot == nil:
		return extensions.Errorf(extensions.KindUnavailable, "its image was removed meanwhile: %w", err).WithRemedy("create it again")
	}
	return err
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
func throttled(_ string, st *status.Status) (time.Duration, bool) {
	for _, d := range st.Details() {
		if p, ok := d.(*pb.RPCRetryPolicy); ok {
			return time.Duration(max(float64(p.GetRetryAfterSecs()), 0.1) * float64(time.Second)), true
		}
	}
	return 0, false
}
