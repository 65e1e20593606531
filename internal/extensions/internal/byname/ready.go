package byname

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// OnItsWay is how a sandbox that the place starts is waited for: as long as the caller has time.
var OnItsWay = ready.Wait{Interval: time.Second, Timeout: -1}

// Started waits until the place has started a sandbox. remedy says what to look at if it does not.
func (p *Place[T]) Started(ctx context.Context, h extensions.Handle, remedy string) error {
	return OnItsWay.Until(ctx, func(ctx context.Context) (string, error) {
		_, told, err := p.Owned(ctx, h)
		if err != nil {
			return "", err
		}
		switch told.Phase { //nolint:exhaustive // the others are no way to it
		case extensions.PhaseReady:
			return "", nil
		case extensions.PhaseProvisioning, extensions.PhaseUnreachable:
			return p.Vendor + " says " + told.State, nil
		}
		return "", extensions.Errorf(extensions.KindFailed, "%s did not start it: %s", p.Vendor, told.Reason).WithRemedy("%s", remedy)
	})
}

// Runs observes a sandbox that was ready a moment ago; one that is not any more is KindFailed.
func (p *Place[T]) Runs(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	_, told, err := p.Owned(ctx, h)
	if err == nil && told.Phase != extensions.PhaseReady {
		err = extensions.Errorf(extensions.KindFailed, "it no longer runs: %s", told.Reason)
	}
	if err != nil {
		return extensions.Observation{}, err
	}
	return told.Observation, nil
}
