package openshell

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
	if err := noService(req.Service); err != nil {
		return r, err
	}
	i, err := b.inside(ctx, h)
	if err != nil {
		return r, err
	}
	c, err := i.content(ctx)
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

func noService(name string) error {
	if name == "" {
		return nil
	}
	return extensions.Errorf(extensions.KindUnsupported, "a sandbox of %s has no services, so %q does not exist", vendor,
		extensions.Clean(name, 80)).At("service")
}
