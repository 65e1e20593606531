package ledger

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Host is a registered host of an account.
type Host struct {
	Account   string
	Name      string
	Ref       string // of extensions.Host
	Facts     extensions.HostFacts
	CreatedAt time.Time
	UpdatedAt time.Time
	// Replaces lists the refs, besides Ref, that PutHost accepts as the current one; nil accepts any. Not
	// stored.
	Replaces []string
	// Existed is set by PutHost: a host of this name already existed. Not stored.
	Existed bool
}
