package modal

import (
	"context"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// A sandbox that was terminated may be told of for a moment.
const (
	goneWithin = 15 * time.Second
	gonePause  = 250 * time.Millisecond
)

// Teardown implements extensions.Backend.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	report, err := b.teardown(ctx, h)
	return report, failed("teardown", h.ID, err)
}

func (b *backend) teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	s, err := b.owned(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	if err != nil {
		return report, err
	}
	in := pb.SandboxTerminateRequest_builder{SandboxId: s.ref}.Build()
	if backendOf(s.ref) == 1 {
		_, err = b.control.SandboxTerminate(ctx, in)
	} else {
		_, err = b.control.SandboxTerminateV2(ctx, in)
	}
	if err != nil && !extensions.IsKind(err, extensions.KindNotFound) {
		return report, err
	}
	report.Removed = []string{"sandbox " + s.ref}
	err = ready.Wait{Interval: gonePause, Timeout: goneWithin}.Until(ctx, func(ctx context.Context) (string, error) {
		_, err := b.owned(ctx, h)
		if extensions.IsKind(err, extensions.KindNotFound) {
			return "", nil
		}
		return vendor + " still shows it", err
	})
	if extensions.IsKind(err, extensions.KindTimeout) && ctx.Err() == nil {
		err = extensions.Errorf(extensions.KindUnavailable, "%s still shows %s after ending it", vendor, s.ref).
			WithRemedy("destroy it again")
	}
	b.entered.Delete(s.ref)
	b.filled.Delete(s.ref)
	return report, err
}
