package daytona

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// The vendor destroys a sandbox after it has answered, within seconds as a rule; users report hours.
var gone = ready.Wait{Interval: time.Second, Timeout: 2 * time.Minute}

// Teardown implements extensions.Backend. With a fork goes what it came from.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	defer tell("teardown", h.ID, &err)
	if report, err = b.all.Teardown(ctx, h); err == nil && b.vm {
		err = b.drop(ctx, forkName(h.ID))
	}
	return report, err
}
