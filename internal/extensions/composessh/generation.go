package composessh

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// SetGeneration implements extensions.GenerationSetter. The labels of the
// containers keep the generation they were made with; the record counts.
func (b *Backend) SetGeneration(ctx context.Context, h extensions.Handle, generation int64) error {
	return failed("set generation", h.ID, b.change(ctx, h, map[string]string{"raise": formatInt(generation)}))
}
