// Package plan decides where a request runs and what it costs, from the request, the catalog and evidence
// that its caller gathered. It is pure: it dials nothing, reads no ledger and no clock, and equal values
// give equal answers.
package plan

import (
	"maps"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// OnConflictReuse uses the live sandbox of the request's name, if one was made with it from the same profile and inputs.
// That one stays as it is, with its deadline; several callers may use it at once.
const OnConflictReuse = "reuse"

// Request is a user's request for a sandbox. The ledger stores all of it except Secrets, so an import can
// restore every argument.
type Request struct {
	// Profile is "profile.x" or "profile.x@1.0.0".
	Profile string `json:"profile"`
	// Extension is the only binding to use; "" = as the profile says. One that the profile rules out by its pin is
	// KindInvalid, unless its overrides have the extension.
	Extension string `json:"extension,omitempty"`
	// Isolation is a floor above the profile's. "none" is the direct mode: on this machine and without walls, so that
	// the profile's network rules, limits and floor do not hold; its route.constraints do.
	Isolation string `json:"isolation,omitempty"`
	// Name is unique per account among live sandboxes. NamePrefix appends a random suffix; without either,
	// the id is the name.
	Name       string `json:"name,omitempty"`
	NamePrefix string `json:"name_prefix,omitempty"`
	// Hosts are refs (extensions.Host.Ref) or bare names looked up in the ledger; they override the
	// profile's placement.
	Hosts  []string       `json:"hosts,omitempty"`
	Inputs map[string]any `json:"inputs,omitempty"`
	// TTL is "90s", "2h", "1d"; "" = the profile's default.
	TTL   string `json:"ttl,omitempty"`
	Scope string `json:"scope,omitempty"`
	// ShareKey names a sandbox that several hold, for the scopes agent and shared.
	ShareKey string   `json:"share_key,omitempty"`
	Consumer Consumer `json:"consumer,omitzero"`
	// Billing is "platform" or "byok"; "" = platform.
	Billing string            `json:"billing,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// Secrets become environment variables inside and are stored nowhere.
	Secrets map[string]extensions.Secret `json:"-"`
	// SecretNames are the sorted names of Secrets; set by the engine.
	SecretNames    []string `json:"secret_names,omitempty"`
	SecretsVersion int64    `json:"secrets_version,omitempty"`
	// MaxCost refuses a create whose worst case at the TTL exceeds it: "1.00 USD".
	MaxCost string `json:"max_cost,omitempty"`
	// Image and Resources are set instead of the profile's, as far as its overrides allow.
	Image     string         `json:"image,omitempty"`
	Resources *profile.Sizes `json:"resources,omitempty"`
	// OnConflict is "error" (default), "adopt", or [OnConflictReuse].
	OnConflict           string            `json:"on_conflict,omitempty"`
	OnExpiry             string            `json:"on_expiry,omitempty"`
	OnUnreachableDestroy string            `json:"on_unreachable_destroy,omitempty"`
	Triggers             map[string]string `json:"triggers,omitempty"`
	// ReplaceMode says what a change of Triggers does: "replace" (default), or "recreate" under the same id.
	ReplaceMode  string `json:"replace_mode,omitempty"`
	FromSnapshot string `json:"from_snapshot,omitempty"`
	FromSandbox  string `json:"from_sandbox,omitempty"`
	// DesiredMode is "", "running" or "paused".
	DesiredMode        string            `json:"desired_mode,omitempty"`
	DeletionProtection bool              `json:"deletion_protection,omitempty"`
	Timeouts           map[string]string `json:"timeouts,omitempty"`
	// Account is the account whose credit, limits and permission apply to a live sandbox that belongs to
	// another account than the engine's; "" = the engine's. New sandboxes belong to the engine's account.
	Account string `json:"-"`
	// Leaving lists sandboxes that end before this one begins: a plan counts their holds as free.
	Leaving []extensions.ID `json:"-"`
	// Former is the receipt of the sandbox that this one replaces, if any.
	Former Receipt `json:"-"`
	// Together are the sandboxes of the same plan, new ones and those with a later deadline, which must be
	// affordable together. nil = this one alone.
	Together *Together `json:"-"`
	// Runs says that a command is to run in it, so its place must be able to.
	Runs bool `json:"-"`
}

// ReplaceByRecreate is the replace_mode that makes a sandbox again under its id.
const ReplaceByRecreate = "recreate"

// Recreates reports whether a changed request makes the sandbox again under its id.
func (r Request) Recreates(before Request) bool {
	return r.ReplaceMode == ReplaceByRecreate && !maps.Equal(r.Triggers, before.Triggers)
}

// Consumer says who a sandbox runs for.
type Consumer struct {
	Actor     string `json:"actor,omitempty"` // adm | agt | atm
	Harness   string `json:"harness,omitempty"`
	RunID     string `json:"run_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	JobID     string `json:"job_id,omitempty"`
}

const (
	maxName      = 63
	randomSuffix = 9 // "-" and 8 characters of an id
)

// NameFor returns the name of a new sandbox with this id.
func (r Request) NameFor(id extensions.ID) string {
	switch {
	case r.Name != "":
		return r.Name
	case r.NamePrefix != "":
		return r.NamePrefix + string(id[len(id)-randomSuffix+1:])
	}
	return string(id)
}
