package engine

import (
	"context"
	"maps"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/secretref"
)

// secrets gathers what becomes environment inside: the caller's own values
// and the profile's references, resolved now and kept in memory only. The
// caller's value wins over a reference of the same name.
func (e *Engine) secrets(ctx context.Context, p *prepared) (map[string]Secret, error) {
	out := maps.Clone(p.req.Secrets)
	if out == nil {
		out = map[string]Secret{}
	}
	for _, r := range p.resolved.SecretRefs {
		if _, ok := out[r.Name]; ok {
			continue
		}
		s, err := secretref.Resolve(ctx, r.Ref, secretref.Options{})
		if err != nil {
			return nil, err
		}
		out[r.Name] = s
	}
	return out, nil
}
