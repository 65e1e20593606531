package profile

import (
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// Set holds every profile and every kit of a catalog, in any number of versions. It must not change while
// it is read.
type Set struct {
	profiles shelf[*Profile]
	kits     shelf[*Kit]
}

// NewSet returns an empty set.
func NewSet() *Set {
	return &Set{profiles: newShelf[*Profile]("profile", ProfilePrefix), kits: newShelf[*Kit]("kit", KitPrefix)}
}

// maxAncestors limits a chain of extends.
const maxAncestors = 16

// Add adds p, which must come from a successful Parse. It returns the profile of the same id and version
// that p replaces, or nil.
func (s *Set) Add(p *Profile) *Profile { return s.profiles.add(p) }

// AddKit adds k, which must come from a successful ParseKit. It returns the kit of the same id and version
// that k replaces, or nil.
func (s *Set) AddKit(k *Kit) *Kit { return s.kits.add(k) }

// Lookup finds "profile.x@1.0.0", or the highest version of "profile.x". If there is none, it returns
// KindInvalid with the nearest names.
func (s *Set) Lookup(ref string) (*Profile, error) { return s.profiles.lookup(ref) }

// All returns every profile by id, highest version first.
func (s *Set) All() []*Profile { return s.profiles.all() }

// Flatten merges p with its ancestors and checks the result. The lineage is "id@version" of p and its
// ancestors, nearest first. An unknown ancestor, a cycle and a contradiction are strictyaml.Errors of
// KindInvalid.
func (s *Set) Flatten(p *Profile) (*Profile, []string, error) {
	chain, err := s.chain(p)
	if err != nil {
		return nil, nil, strictyaml.Errors{err}.Err()
	}
	flat := merged(chain)
	lineage := make([]string, len(chain))
	for i, c := range chain {
		lineage[i] = c.Ref()
	}
	return flat, lineage, checkWhole(flat)
}

func merged(chain []*Profile) *Profile {
	flat := chain[len(chain)-1]
	for _, next := range slices.Backward(chain[:len(chain)-1]) {
		flat = merge(flat, next)
	}
	return flat
}

// flat returns the profile ref with its ancestors; nil if it does not exist or contradicts itself, which
// Resolve and the catalog report.
func (s *Set) flat(ref string) *Profile {
	p, err := s.Lookup(ref)
	if err != nil {
		return nil
	}
	if p, _, err = s.Flatten(p); err != nil {
		return nil
	}
	return p
}

// BundleOf returns the reference of the profile whose folder holds the bundle of ref: ref itself, or the
// ancestor that names it.
func (s *Set) BundleOf(ref, bundle string) (string, error) {
	p, err := s.Lookup(ref)
	if err != nil {
		return "", err
	}
	chain, broken := s.chain(p)
	if broken != nil {
		return "", strictyaml.Errors{broken}.Err()
	}
	for _, c := range chain {
		if c.names(bundle) {
			return c.Ref(), nil
		}
	}
	return "", invalid("%s has no bundle", p.Ref())
}

// names reports whether a profile, its ancestors apart, names the bundle.
func (p *Profile) names(bundle string) bool {
	is := func(b *string) bool { return b != nil && *b == bundle }
	of := func(i *Image) bool { return i != nil && is(i.Bundle) }
	if p.Compose != nil && is(p.Compose.Bundle) || of(p.Image) {
		return true
	}
	k := value(p.Containers, Containers{})
	named := of(value(k.Agent, Container{}).Image)
	for _, c := range k.Services {
		named = named || of(c.Image)
	}
	return named
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
