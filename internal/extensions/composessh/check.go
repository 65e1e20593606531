package composessh

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// CheckSpec implements extensions.SpecChecker: the options, the policy on the
// stack and what the host's own arguments rule out, without asking the host.
func (extension) CheckSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) error {
	return failed("check", spec.ID, checkSpec(ctx, cfg, spec))
}

func checkSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) error {
	s, err := parseBinding(cfg)
	if err != nil {
		return err
	}
	if err := acceptRequest(spec); err != nil {
		return err
	}
	p, err := newPlan(s, spec)
	if err != nil {
		return err
	}
	p.walls = walls{mode: compose.NetworkDeny}
	if spec.Network.Needs() == extensions.EgressNone {
		p.walls.mode = compose.NetworkAllow
	}
	if cfg.Host != nil {
		if p.walls, err = wallsFor(*cfg.Host, spec.Network, p.reachIn()); err != nil {
			return err
		}
	}
	if err := p.load(ctx); err != nil || p.project == nil {
		return err
	}
	if p.spec.ID == "" { // not chosen yet, and nothing of the judgement depends on it
		p.spec.ID = "sbx-aaaaaaaaaaaaaaaaaaaa"
	}
	_, err = p.renderFor(0)
	return err
}
