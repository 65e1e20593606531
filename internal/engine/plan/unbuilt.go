package plan

import (
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// refuseNotYet refuses, by name and for every place, what the profile sets and nothing carries out yet: a setting
// that is accepted is a setting that holds. The error is KindUnsupported.
func refuseNotYet(profiles *profile.Set, r *profile.Resolved) error {
	found := profiles.Unbuilt(r.Lineage[0])
	if len(found) == 0 {
		return nil
	}
	return extensions.AtField("profile", extensions.Errorf(extensions.KindUnsupported,
		"%s@%s sets %s, which this version does not support yet",
		r.ID, r.Version, strings.Join(found, ", ")).WithRemedy("remove it from the profile and its ancestors, or wait for a later release"))
}
