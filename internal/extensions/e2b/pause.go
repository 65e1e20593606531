package e2b

import (
	"context"
	"net/http"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
)

// Pause implements extensions.Pauser.
func (b *backend) Pause(ctx context.Context, h extensions.Handle) (extensions.Observation, error) {
	d, err := b.owned(ctx, h)
	if err == nil && d.State != api.Paused {
		memory := true
		_, err = b.act(ctx, http.MethodPost, d.SandboxID, "pause", api.SandboxPauseRequest{Memory: &memory}, nil, nil)
		if err == nil || extensions.IsKind(err, extensions.KindConflict) { // another process was quicker
			d, err = b.owned(ctx, h)
		}
	}
	return b.moded(h, d, err, "pause", api.Paused)
}

// Resume implements extensions.Pauser. The vendor's clock begins anew, so it is told the deadline.
func (b *backend) Resume(ctx context.Context, h extensions.Handle, deadline time.Time) (extensions.Observation, error) {
	d, err := b.owned(ctx, h)
	if err == nil && d.State == api.Paused {
		var out api.Sandbox
		_, err = b.act(ctx, http.MethodPost, d.SandboxID, "connect", api.ConnectSandbox{Timeout: seconds(deadline)}, &out,
			func() bool { return out.SandboxID == d.SandboxID })
	} else if err == nil {
		err = b.until(ctx, d.SandboxID, deadline)
	}
	if err == nil {
		d, err = b.owned(ctx, h)
	}
	return b.moded(h, d, err, "resume", api.Running)
}

// moded observes a sandbox that is to be in a state now.
func (b *backend) moded(h extensions.Handle, d *api.SandboxDetail, err error, op string,
	want api.SandboxState) (extensions.Observation, error) {
	if err == nil && d.State != want {
		err = extensions.Errorf(extensions.KindUnavailable, "%s says %s, want %s", vendor, extensions.Clean(string(d.State), 40), want)
	}
	if err != nil {
		return extensions.Observation{}, failed(op, h.ID, err)
	}
	return b.observe(h.ID, d), nil
}
