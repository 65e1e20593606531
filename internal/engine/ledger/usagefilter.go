package ledger

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// UsageFilter selects meters and their charges; zero fields select all. A charge belongs to the period in
// which its meter ended.
type UsageFilter struct {
	From, To   time.Time // From <= end < To; ignored for running meters
	Account    string    // "org/workspace", or "org" for all its workspaces
	SnapshotID string    // what keeping this one cost
	SandboxID  extensions.ID
	Profile    string // profile id, any version
	Extension  string
	Host       string
	Component  string // base and variants: "vcpu" includes "vcpu:paused"
	Actor      string
	Harness    string
	RunID      string
}
