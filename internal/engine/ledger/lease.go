package ledger

import (
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Lease is one resource's lease on a sandbox that several may hold. It counts until ExpiresAt or its release,
// and ends with its sandbox.
type Lease struct {
	ID        string
	SandboxID extensions.ID
	Request   json.RawMessage // what this holder asked for, without secrets
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Counts reports whether the lease holds its sandbox at a time.
func (s Lease) Counts(now time.Time) bool { return s.ExpiresAt.After(now) }
