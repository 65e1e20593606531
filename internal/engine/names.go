package engine

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
)

const (
	maxName      = 63
	randomSuffix = 9 // "-" and 8 characters of an id
)

// CheckName checks the name of a sandbox, snapshot or host; see
// profile.CheckName.
func CheckName(name string) error { return profile.CheckName(name) }

// nameFor settles the name of a new sandbox.
func nameFor(req Request, id ID) string {
	switch {
	case req.Name != "":
		return req.Name
	case req.NamePrefix != "":
		return req.NamePrefix + string(id[len(id)-randomSuffix+1:])
	}
	return string(id)
}
