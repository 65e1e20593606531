package composessh

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// CheckSpec implements extensions.SpecChecker. It checks the options, the policy on the stack and the limits
// in the host's own arguments, without asking the host.
func (extension) CheckSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	notes, err := checkSpec(ctx, cfg, spec)
	return notes, failed("check", spec.ID, err)
}

func checkSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	s, err := parseBinding(cfg)
	if err != nil {
		return nil, err
	}
	if err := acceptRequest(s, spec); err != nil {
		return nil, err
	}
	p, err := newPlan(s, spec)
	if err != nil {
		return nil, err
	}
	p.walls = walls{mode: compose.NetworkDeny}
	if spec.Network.Needs() == extensions.EgressNone {
		p.walls.mode = compose.NetworkAllow
	}
	if cfg.Host != nil {
		if p.walls, err = wallsFor(*cfg.Host, spec.Network, p.reachIn()); err != nil {
			return nil, err
		}
	}
	if spec.BuildsFromUnknown() {
		return nil, nil
	}
	if err := p.load(ctx); err != nil || p.project == nil {
		return nil, err
	}
	if p.spec.ID == "" { // not chosen yet, and the check does not depend on it
		p.spec.ID = "sbx-aaaaaaaaaaaaaaaaaaaa"
	}
	if _, err = p.render(); err != nil {
		return nil, err
	}
	return p.project.Notes(p.options.publish == "" && p.walls.mode != compose.NetworkAllow), nil
}
