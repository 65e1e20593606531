package compose

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// FromImage makes a stack of one service, AgentService, that runs the image
// until it is stopped. The source holds the contexts of what is to be built;
// it is read only then and may be nil otherwise.
func FromImage(_ context.Context, _ extensions.Image, _ extensions.WorkspaceSource) (*Project, error) {
	return nil, extensions.Errorf(extensions.KindInternal, "not made yet")
}
