package ledger

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func openSQLite(ctx context.Context, path string, o Options) (Ledger, error) {
	return nil, failuref(extensions.KindInternal, "not built yet")
}
