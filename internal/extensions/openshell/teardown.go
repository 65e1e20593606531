package openshell

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// gone is how the gateway deletes: after it has answered.
var gone = ready.Wait{Interval: time.Second, Timeout: 2 * time.Minute}

// end deletes a sandbox by its name, which the gateway knows alone. What has the name was compared before.
func (b *backend) end(ctx context.Context, t byname.Told) error {
	workspace, err := workspaceOf(t.Handle)
	if err != nil {
		return err
	}
	b.Forget(t.Handle.Ref)
	_, err = b.gateway.DeleteSandbox(ctx, &gateway.DeleteSandboxRequest{Name: t.Called, Workspace: workspace})
	return err
}
