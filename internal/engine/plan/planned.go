package plan

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Planned is what a create would do.
type Planned struct {
	// Estimate is stable; see [Estimate]. EstimateKnown is false if placement comes from the ledger or an
	// argument was unknown; Estimate is then only good for a notice.
	Estimate      Estimate
	EstimateKnown bool
	// Pinned says that the request itself allows only one place; Extension and Host (its ref, or "" for an
	// account and for this machine unnamed) are then what apply will find.
	Pinned          bool
	Extension, Host string
	TTL             time.Duration
	Scope           string
	ProfileID       string
	Version         string
	// CostClass and LatencyClass are the profile's labels, "" = none; they choose nothing.
	CostClass, LatencyClass string
	Notices                 []notice.Notice
	// Route is the decision as far as a plan can take it: without counting, asking any place, or history.
	Route Route
	// NameHolder is the sandbox that now has the name, if any. NameTaken is the warning about it, for
	// callers who do not own it.
	NameHolder extensions.ID
	NameTaken  *notice.Notice
}
