package modal

import (
	"context"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// gone is how long a sandbox that was terminated may be told of.
var gone = ready.Wait{Interval: 250 * time.Millisecond, Timeout: 15 * time.Second}

// Teardown implements extensions.Backend.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	defer named("teardown", h.ID, &err)
	s, err := b.owned(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	if err != nil {
		return report, err
	}
	_, err = b.control.SandboxTerminateV2(ctx, pb.SandboxTerminateRequest_builder{SandboxId: s.ref}.Build())
	if err != nil && !extensions.IsKind(err, extensions.KindNotFound) {
		return report, err
	}
	b.entered.Delete(s.ref)
	b.filled.Forget(s.ref)
	report.Removed = []string{"sandbox " + s.ref}
	return report, gone.Soon(ctx, vendor+" still shows "+s.ref, func(ctx context.Context) (bool, error) {
		_, err := b.owned(ctx, h)
		if extensions.IsKind(err, extensions.KindNotFound) {
			return true, nil
		}
		return false, err
	})
}
