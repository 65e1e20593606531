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
const (
	goneWithin = 2 * time.Minute
	gonePause  = time.Second
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
	if s.state() != api.SandboxStateDestroying {
		if err := b.destroy(ctx, s.Id); err != nil {
			return report, err
		}
	}
	report = extensions.CleanupReport{Removed: []string{"sandbox " + s.Id}, StartedAt: stamp(value(s.CreatedAt))}
	err = ready.Wait{Interval: gonePause, Timeout: goneWithin}.Until(ctx, func(ctx context.Context) (string, error) {
		s, err := b.get(ctx, s.Id)
		switch {
		case extensions.IsKind(err, extensions.KindNotFound):
			return "", nil
		case err != nil:
			return "", err
		}
		return vendor + " says " + string(s.state()), nil
	})
	if extensions.IsKind(err, extensions.KindTimeout) && ctx.Err() == nil {
		err = extensions.Errorf(extensions.KindUnavailable, "%s still shows %s %s after it was told to destroy it", vendor, s.Id, goneWithin).
			WithRemedy("destroy it again; if it stays, ask %s about this sandbox: it may cost until then", vendor)
	}
	return report, err
}

// destroy ends a sandbox. One that is gone is success.
func (b *backend) destroy(ctx context.Context, ref string) error {
	_, err := b.act(ctx, http.MethodDelete, ref)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return nil
	}
	return err
}
