package engine

import (
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// power asserts one optional interface of an opened backend: the only place
// that does. The error names the extensions that do have the power.
func power[T any](e *Engine, b *opened, p extensions.Power) (T, error) {
	if v, ok := b.Backend.(T); ok && b.binding.Descriptor.Has(p) {
		return v, nil
	}
	var zero T
	return zero, e.unsupported(b.binding.ID, p)
}

func (e *Engine) unsupported(binding string, p extensions.Power) error {
	var can []string
	for _, b := range e.catalog.Bindings {
		if b.Descriptor.Has(p) && !b.Descriptor.NamedOnly {
			can = append(can, b.ID)
		}
	}
	slices.Sort(can)
	err := extensions.Errorf(extensions.KindUnsupported, "%s has no %q", binding, p)
	if len(can) == 0 {
		return err.WithRemedy("no extension of this catalog has it")
	}
	return err.WithRemedy("use a profile placed on one that has it: %s", strings.Join(can, ", "))
}
