package profile

import (
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// Set is every profile of a catalog, several versions of one id included.
// It must not change while it is read.
type Set struct {
	byID map[string][]*Profile // highest version first
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{byID: map[string][]*Profile{}} }

// maxAncestors bounds a chain of extends.
const maxAncestors = 16

// Add puts p, which Parse returned without error, into the set. It returns
// the profile of the same id and version that p replaces, or nil.
func (s *Set) Add(p *Profile) *Profile {
	list := s.byID[p.ID]
	for i, old := range list {
		if old.Version == p.Version {
			list = slices.Clone(list)
			list[i] = p
			s.byID[p.ID] = list
			return old
		}
	}
	list = append(slices.Clone(list), p)
	slices.SortFunc(list, func(a, b *Profile) int { return higher(a.Version, b.Version) })
	s.byID[p.ID] = list
	return nil
}

// higher orders released versions before pre-releases and, among each, higher
// ones first: a reference without a version never picks a pre-release while
// there is anything else.
func higher(a, b string) int {
	va, errA := parseVersion(a)
	vb, errB := parseVersion(b)
	if errA != nil || errB != nil { // Parse refuses these
		return strings.Compare(b, a)
	}
	if (va.pre == nil) != (vb.pre == nil) {
		return boolInt(vb.pre == nil) - boolInt(va.pre == nil)
	}
	return vb.compare(va)
}

// Lookup finds "profile.x@1.0.0", or the highest version of "profile.x".
// What is not there is KindInvalid and names the nearest profiles.
func (s *Set) Lookup(ref string) (*Profile, error) {
	id, wanted, pinned := strings.Cut(ref, "@")
	list := s.byID[id]
	if len(list) == 0 {
		err := invalid("there is no profile %s", quoted(id))
		if id == "" {
			err = invalid("no profile is named")
		}
		return nil, err.WithRemedy("%s", s.near(id))
	}
	if !pinned {
		return list[0], nil
	}
	versions := make([]string, len(list))
	for i, p := range list {
		if p.Version == wanted {
			return p, nil
		}
		versions[i] = p.Version
	}
	return nil, invalid("%s has no version %s", id, quoted(wanted)).
		WithRemedy("use one of %s, or leave the version out for %s", strings.Join(versions, ", "), versions[0])
}

func (s *Set) near(id string) string {
	known := s.IDs()
	if near := strictyaml.NearestN(id, known, 3); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	if near := strictyaml.NearestN(ProfilePrefix+id, known, 3); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	switch {
	case len(known) == 0:
		return "the catalog has no profiles at all"
	case len(known) > 12:
		known = append(known[:12:12], "…")
	}
	return "use one of " + strings.Join(known, ", ")
}

// IDs returns the sorted ids.
func (s *Set) IDs() []string { return slices.Sorted(maps.Keys(s.byID)) }

// All returns every profile by id, highest version first.
func (s *Set) All() []*Profile {
	var all []*Profile
	for _, id := range s.IDs() {
		all = append(all, s.byID[id]...)
	}
	return all
}

// Flatten merges p with its ancestors and checks the whole. The lineage is
// "id@version" of p and its ancestors, nearest first. An unknown ancestor, a
// cycle and what contradicts itself are strictyaml.Errors of KindInvalid.
func (s *Set) Flatten(p *Profile) (*Profile, []string, error) {
	chain, err := s.chain(p)
	if err != nil {
		return nil, nil, strictyaml.Errors{err}.Err()
	}
	flat := chain[len(chain)-1]
	for _, next := range slices.Backward(chain[:len(chain)-1]) {
		flat = merge(flat, next)
	}
	lineage := make([]string, len(chain))
	for i, c := range chain {
		lineage[i] = c.Ref()
	}
	return flat, lineage, checkWhole(flat)
}

// BundleOf returns the reference of the profile beside which the bundle of
// ref lies: ref itself, or the ancestor that says compose.bundle.
func (s *Set) BundleOf(ref string) (string, error) {
	p, err := s.Lookup(ref)
	if err != nil {
		return "", err
	}
	chain, broken := s.chain(p)
	if broken != nil {
		return "", strictyaml.Errors{broken}.Err()
	}
	for _, c := range chain {
		if c.Compose != nil && c.Compose.Bundle != nil {
			return c.Ref(), nil
		}
	}
	return "", invalid("%s has no bundle", p.Ref())
}

func (s *Set) chain(p *Profile) ([]*Profile, *strictyaml.Error) {
	chain := []*Profile{p}
	refs := []string{p.Ref()}
	for last := p; last.Extends != nil; {
		parent, err := s.Lookup(*last.Extends)
		if err != nil {
			return nil, last.Errorf([]string{"extends"}, "%s", strictyaml.Message(err))
		}
		refs = append(refs, parent.Ref())
		switch {
		case slices.Contains(chain, parent):
			return nil, p.Errorf([]string{"extends"}, "extends forms a cycle: %s", strings.Join(refs, " -> "))
		case len(chain) == maxAncestors:
			return nil, p.Errorf([]string{"extends"}, "more than %d ancestors", maxAncestors)
		}
		chain = append(chain, parent)
		last = parent
	}
	return chain, nil
}
