package compose

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Load reads the stack from the bundle and polices it. A refused stack is a
// KindInvalid error that wraps a *PolicyError with everything it is refused
// for; a stack that Compose itself cannot read is KindInvalid too.
func Load(ctx context.Context, in Input) (*Project, error) {
	b, err := ReadBundle(ctx, in.Source)
	if err != nil {
		return nil, err
	}
	_ = b
	return nil, extensions.Errorf(extensions.KindInternal, "not read yet")
}
