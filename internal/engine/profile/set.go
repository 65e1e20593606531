package profile

// Set is every profile of a catalog, several versions of one id included.
// It must not change while it is read.
type Set struct {
	byID map[string][]*Profile // highest version first
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{byID: map[string][]*Profile{}} }

// Add puts p into the set and returns the profile of the same id and version
// that it replaces, or nil.
func (s *Set) Add(p *Profile) *Profile { return nil }

// Lookup finds "profile.x@1.0.0", or the highest version of "profile.x".
func (s *Set) Lookup(ref string) (*Profile, error) { return nil, invalid("no profile %s", quoted(ref)) }

// Flatten merges a profile with its ancestors.
func (s *Set) Flatten(p *Profile) (*Profile, []string, error) { return nil, nil, nil }

// All returns every profile by id, highest version first.
func (s *Set) All() []*Profile { return nil }

// IDs returns the sorted ids.
func (s *Set) IDs() []string { return nil }
