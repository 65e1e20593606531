package daytona

import (
	"context"
	"net/http"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// The vendor destroys a sandbox after it has answered, within seconds as a rule; users report hours.
var gone = ready.Wait{Interval: time.Second, Timeout: 2 * time.Minute}

// end asks for the end of a sandbox.
func (b *backend) end(ctx context.Context, t byname.Told) error {
	b.Forget(t.Handle.Ref)
	b.homes.Delete(t.Handle.Ref)
	_, err := b.act(ctx, http.MethodDelete, t.Handle.Ref, nil)
	return err
}

// Teardown implements extensions.Backend. With a fork goes what it came from.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	defer tell("teardown", h.ID, &err)
	if report, err = b.Place.Teardown(ctx, h); err == nil && b.vm {
		err = b.drop(ctx, forkName(h.ID))
	}
	return report, err
}
