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
	// Replaces are, for PutHost alone, the refs that the host may have had until
	// now beside Ref; nil = any. It is not stored.
	Replaces []string
	// Existed is PutHost's answer: there was one of the name already. It is not
	// stored.
	Existed bool
}
