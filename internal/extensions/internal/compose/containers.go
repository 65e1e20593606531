package compose

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// FromContainers makes a stack of AgentService and the named services on one
// network, each reachable by its name and its hostname. Source is as for
// FromImage.
func FromContainers(_ context.Context, _ extensions.Containers, _ extensions.WorkspaceSource) (*Project, error) {
	return nil, extensions.Errorf(extensions.KindInternal, "not made yet")
}
