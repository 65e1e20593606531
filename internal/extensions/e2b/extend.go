package e2b

import (
	"context"
	"net/http"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
)

// Extend implements extensions.Extender. The vendor cuts what its plan does not allow without a word, so the
// deadline is read back. It was sent as what is left, and is compared as that.
func (b *backend) Extend(ctx context.Context, h extensions.Handle, deadline time.Time) error {
	d, err := b.owned(ctx, h)
	if err == nil {
		err = b.until(ctx, d.SandboxID, deadline)
	}
	return failed("extend", h.ID, err)
}

func (b *backend) until(ctx context.Context, ref string, deadline time.Time) error {
	_, err := b.act(ctx, http.MethodPost, ref, "timeout", api.SandboxTimeoutRequest{Timeout: seconds(deadline)}, nil, nil)
	if err != nil {
		return err
	}
	d, err := b.get(ctx, ref)
	if err != nil {
		return err
	}
	if early := time.Until(deadline) - b.control.Until(d.EndAt); early > time.Second {
		return extensions.Errorf(extensions.KindUnsupported, "%s ends it %s before the deadline", vendor, early.Round(time.Second)).
			WithRemedy("shorten ttl: the plan limits how long a sandbox runs at a stretch")
	}
	return nil
}
