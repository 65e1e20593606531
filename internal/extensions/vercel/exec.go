package vercel

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// Exec implements extensions.Execer.
func (b *backend) Exec(ctx context.Context, h extensions.Handle, req extensions.ExecRequest) (r extensions.ExecResult, err error) {
	defer named("exec", h.ID, &err)
	if err := req.CheckSingle(vendor); err != nil {
		return r, err
	}
	i, err := b.enter(ctx, h)
	if err != nil {
		return r, err
	}
	c, err := b.filled.Of(ctx, i.w.Session.ID, h.ID, i.calls())
	if err != nil {
		return r, err
	}
	return execwire.Run(ctx, c.For(req), execwire.Inside(i.dir, i.calls().Transport))
}
