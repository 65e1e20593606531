package e2b

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
	e, err := b.enter(ctx, h)
	if err != nil {
		return r, err
	}
	c, err := b.filled.Of(ctx, e.detail.SandboxID, h.ID, e)
	if err != nil {
		return r, err
	}
	return execwire.Run(ctx, c.For(req), execwire.Inside(workDir(e.detail.Metadata), e.run))
}
