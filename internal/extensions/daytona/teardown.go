package daytona

import (
	"context"
	"net/http"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// The vendor destroys a sandbox after it has answered, within seconds as a rule; users report hours.
var gone = ready.Wait{Interval: time.Second, Timeout: 2 * time.Minute}

// Teardown implements extensions.Backend.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	report, err := b.teardown(ctx, h)
	return report, failed("teardown", h.ID, err)
}

func (b *backend) teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	s, err := b.owned(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		err := b.dropFork(ctx, h.ID)
		return extensions.CleanupReport{AlreadyGone: err == nil}, err
	}
	if err != nil {
		return report, err
	}
	if s.state() != api.SandboxStateDestroying {
		if err := b.destroy(ctx, s.Id); err != nil {
			return report, err
		}
	}
	report = extensions.CleanupReport{Removed: []string{"sandbox " + s.Id}, StartedAt: stamp(value(s.CreatedAt))}
	err = gone.Soon(ctx, vendor+" still shows "+s.Id+", which may cost until it is gone,", func(ctx context.Context) (bool, error) {
		_, err := b.get(ctx, s.Id)
		if extensions.IsKind(err, extensions.KindNotFound) {
			return true, nil
		}
		return false, err
	})
	if err == nil {
		err = b.dropFork(ctx, h.ID)
	}
	return report, err
}

// destroy ends a sandbox. One that is gone is success.
func (b *backend) destroy(ctx context.Context, ref string) error {
	_, err := b.act(ctx, http.MethodDelete, ref, nil)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return err
}
