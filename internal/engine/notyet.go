package engine

import (
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// RefuseUnbuilt refuses the arguments of a request that nothing carries out
// yet, by name and whatever the place: a setting that is accepted is a setting
// that holds. The error is KindUnsupported.
func RefuseUnbuilt(req Request) error {
	refuse := func(field, what, remedy string) error {
		return extensions.AtField(field, extensions.Errorf(extensions.KindUnsupported, "%s: this version cannot %s yet", field, what).WithRemedy("%s", remedy))
	}
	switch {
	case req.Scope == profile.ScopeAgent || req.Scope == profile.ScopeShared:
		return refuse("scope", "share a sandbox ("+req.Scope+")", "leave scope out, or set it to session: each resource is a sandbox of its own")
	case req.DesiredMode == route.ModePaused:
		return refuse("desired_mode", "pause a sandbox", "leave desired_mode out, or set it to running; take a sandboxer_snapshot and destroy the sandbox to keep its work without its cost")
	case req.FromSandbox != "":
		return refuse("from_sandbox", "fork a live sandbox", "take a sandboxer_snapshot of it and set from_snapshot to that")
	}
	return nil
}

// refuseNotYet is RefuseUnbuilt with what the profile says.
func refuseNotYet(profiles *profile.Set, req Request, r *profile.Resolved) error {
	if err := RefuseUnbuilt(req); err != nil {
		return err
	}
	found := profiles.Unbuilt(r.Lineage[0])
	if req.Scope != "" { // the request's word counts
		found = slices.DeleteFunc(found, func(field string) bool { return field == "scope_default" })
	}
	if len(found) == 0 {
		return nil
	}
	return extensions.AtField("profile", extensions.Errorf(extensions.KindUnsupported, "%s@%s sets %s, which this version does not carry out yet",
		r.ID, r.Version, strings.Join(found, ", ")).WithRemedy("leave it out of the profile and those it extends, or wait for a later release"))
}
