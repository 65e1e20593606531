package plan

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

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
