package modal

import (
	"context"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// gone is how long a sandbox that was terminated may be told of.
var gone = ready.Wait{Interval: 250 * time.Millisecond, Timeout: 15 * time.Second}

func (b *backend) end(ctx context.Context, t byname.Told) error {
	ref := t.Handle.Ref
	_, err := b.control.SandboxTerminateV2(ctx, pb.SandboxTerminateRequest_builder{SandboxId: ref}.Build())
	b.entered.Delete(ref)
	b.Forget(ref)
	return err
}
