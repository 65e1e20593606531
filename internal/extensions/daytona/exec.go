package daytona

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
	t, err := b.enter(ctx, h)
	if err != nil {
		return r, err
	}
	if req.User != "" && req.User != t.sandbox.User {
		return r, extensions.Errorf(extensions.KindUnsupported, "commands run as %s here, not as %q", extensions.Clean(t.sandbox.User, 80),
			extensions.Clean(req.User, 80)).At("user")
	}
	req.User = ""
	c, err := b.contentOf(ctx, t, h.ID)
	if err != nil {
		return r, err
	}
	env := maps.Clone(c.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, req.Env)
	req.Env = env
	return execwire.Run(ctx, req, execwire.Inside(t.base(), t.calls(0).Transport))
}
