package daytona

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// Exec implements extensions.Execer.
func (b *backend) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (extensions.ExecResult, error) {
	r, err := b.exec(ctx, h, req)
	return r, failed("exec", h.ID, err)
}

func (b *backend) exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (r extensions.ExecResult, err error) {
	if err := req.CheckSingle(vendor); err != nil {
		return r, err
	}
	t, err := b.enter(ctx, h)
	if err != nil {
		return r, err
	}
	if req.User != "" && req.User != t.sandbox.User {
		return r, extensions.Errorf(extensions.KindUnsupported, "commands run as %s here, not as %q", extensions.Clean(t.sandbox.User, 80),
			extensions.Clean(req.User, 80)).At("user")
	}
	req.User = ""
	c, err := b.filled.Of(ctx, t.sandbox.Id, h.ID, t)
	if err != nil {
		return r, err
	}
	return execwire.Run(ctx, c.For(req), execwire.Inside(t.base(), t.calls(0).Transport))
}
