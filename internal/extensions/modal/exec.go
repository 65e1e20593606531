package modal

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
	if err := req.Check(); err != nil {
		return r, err
	}
	if req.Service != "" {
		return r, extensions.Errorf(extensions.KindUnsupported, "a sandbox of %s has no services, so %q does not exist", vendor,
			extensions.Clean(req.Service, 80)).At("service")
	}
	i, err := b.inside(ctx, h)
	if err != nil {
		return r, err
	}
	c, err := b.contentOf(ctx, i)
	if err != nil {
		return r, err
	}
	env := maps.Clone(c.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, req.Env)
	req.Env = env
	return execwire.Run(ctx, req, execwire.Inside(i.workDir, i.run))
}

// inside reaches the inside of a handle's sandbox.
func (b *backend) inside(ctx context.Context, h extensions.Handle) (*inside, error) {
	s, err := b.owned(ctx, h)
	if err != nil {
		return nil, err
	}
	return b.enter(ctx, s)
}
