package life

import (
	"context"
	"maps"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/secretref"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// secrets returns the secrets that become environment variables inside: the caller's values and the
// profile's references, resolved now and kept in memory only. A caller's value wins over a reference of
// the same name.
func (m *Manager) secrets(ctx context.Context, d *plan.Decision) (map[string]extensions.Secret, error) {
	out := maps.Clone(d.Request.Secrets)
	if out == nil {
		out = map[string]extensions.Secret{}
	}
	for _, r := range d.Resolved.SecretRefs {
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
