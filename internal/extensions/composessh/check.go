package composessh

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// CheckSpec implements extensions.SpecChecker. It checks the options, the policy on the stack and the limits
// in the host's own arguments, without asking the host.
func (x extension) CheckSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	notes, err := x.checkSpec(ctx, cfg, spec)
	return notes, failed("check", spec.ID, err)
}

func (x extension) checkSpec(ctx context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
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
	return x.checks.once(checkKey(cfg, spec), func() ([]string, error) {
		if err := p.load(ctx); err != nil || p.project == nil {
			return nil, err
		}
		if p.spec.ID == "" { // not chosen yet, and the check does not depend on it
			p.spec.ID = "sbx-aaaaaaaaaaaaaaaaaaaa"
		}
		if _, err := p.render(); err != nil {
			return nil, err
		}
		return p.project.Notes(p.options.publish == "" && p.walls.mode != compose.NetworkAllow), nil
	})
}

// checks remember the stacks that were accepted: to read and police one of ten services takes 25 ms, a plan asks for each
// sandbox, and an apply twice more. The zero value is ready to use.
type checks struct {
	mu    sync.Mutex
	known map[string]*verdict
}

type verdict struct {
	sync.Mutex
	accepted bool
	notes    []string
}

// maxChecks bounds what one process remembers.
const maxChecks = 64

// once runs check, unless it accepted the same before; "" is never the same. Concurrent callers wait for the first.
func (c *checks) once(key string, check func() ([]string, error)) ([]string, error) {
	if key == "" {
		return check()
	}
	c.mu.Lock()
	v := c.known[key]
	if v == nil {
		if c.known == nil || len(c.known) == maxChecks {
			c.known = map[string]*verdict{}
		}
		v = &verdict{}
		c.known[key] = v
	}
	c.mu.Unlock()
	v.Lock()
	defer v.Unlock()
	if v.accepted {
		return slices.Clone(v.notes), nil
	}
	notes, err := check()
	v.accepted, v.notes = err == nil, slices.Clone(notes)
	return notes, err
}

// checkKey names all that a check reads; "" if a sandbox has its identity already, or a source has no digest.
func checkKey(cfg extensions.Config, spec extensions.Spec) string {
	sources := []extensions.WorkspaceSource{spec.Workspace.Source}
	if spec.Compose != nil {
		sources = append(sources, spec.Compose.BundleSource)
	}
	spec.WithImages(func(i extensions.Image) extensions.Image {
		sources = append(sources, i.BundleSource)
		return i
	})
	digests := make([]string, len(sources))
	for i, s := range sources {
		if s == nil {
			continue
		}
		if digests[i] = s.Digest(); digests[i] == "" {
			return ""
		}
	}
	hash := spec.Hash()
	if spec.ID != "" || hash == "" {
		return ""
	}
	key, err := json.Marshal(struct {
		Hash    string
		Labels  map[string]string
		Digests []string
		Values  map[string]any
		Host    *extensions.Host
	}{hash, spec.Labels, digests, cfg.Values, cfg.Host})
	if err != nil {
		return ""
	}
	return string(key)
}
