package e2b

import (
	"context"
	"maps"

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
	c, err := b.contentOf(ctx, e, h.ID)
	if err != nil {
		return r, err
	}
	env := maps.Clone(c.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, req.Env)
	req.Env = env
	return execwire.Run(ctx, req, execwire.Inside(workDir(e.detail.Metadata), e.run))
}
