package engine

import (
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// refuseNotYet refuses what the schema knows and nothing carries out yet: a
// setting that is accepted is a setting that holds.
func refuseNotYet(r *profile.Resolved) error {
	var found []string
	for _, s := range []struct {
		name string
		set  bool
	}{
		{"ttl.idle_reap", r.Spec.IdleReap > 0},
	} {
		if s.set {
			found = append(found, s.name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return extensions.AtField("profile", extensions.Errorf(extensions.KindUnsupported, "%s@%s sets %s, which this version does not carry out yet",
		r.ID, r.Version, strings.Join(found, ", ")).WithRemedy("leave it out of the profile, or wait for a later release"))
}
