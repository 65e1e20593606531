package profile

import (
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// versioned has an id and a semantic version.
type versioned interface {
	comparable
	identity() (id, version string)
}

// shelf holds every version of one type of thing.
type shelf[T versioned] struct {
	what   string         // for messages: "profile"
	prefix string         // of ids
	byID   map[string][]T // highest version first
}

func newShelf[T versioned](what, prefix string) shelf[T] {
	return shelf[T]{what: what, prefix: prefix, byID: map[string][]T{}}
}

// add returns the value of the same id and version that v replaces, or nil.
func (s shelf[T]) add(v T) (replaced T) {
	id, version := v.identity()
	list := slices.Clone(s.byID[id])
	for i, old := range list {
		if _, has := old.identity(); has == version {
			list[i] = v
			s.byID[id] = list
			return old
		}
	}
	list = append(list, v)
	slices.SortFunc(list, func(a, b T) int {
		_, va := a.identity()
		_, vb := b.identity()
		return higher(va, vb)
	})
	s.byID[id] = list
	return replaced
}

// lookup finds "id@1.0.0", or the highest version of "id".
func (s shelf[T]) lookup(ref string) (found T, err error) {
	id, wanted, pinned := strings.Cut(ref, "@")
	list := s.byID[id]
	if len(list) == 0 {
		err := invalid("there is no %s %s", s.what, quoted(id))
		if id == "" {
			err = invalid("no %s is given", s.what)
		}
		return found, err.WithRemedy("%s", s.near(id))
	}
	if !pinned {
		return list[0], nil
	}
	versions := make([]string, len(list))
	for i, v := range list {
		if _, versions[i] = v.identity(); versions[i] == wanted {
			return v, nil
		}
	}
	return found, invalid("%s has no version %s", id, quoted(wanted)).
		WithRemedy("use one of %s, or omit the version for %s", strings.Join(versions, ", "), versions[0])
}

// maxListed is how many names a remedy lists.
const maxListed = 50

// near suggests ids similar to an unknown one, and lists the known ones.
func (s shelf[T]) near(id string) string {
	known := s.ids()
	if len(known) == 0 {
		return "the catalog has no " + s.what + "s at all"
	}
	bare := make([]string, len(known))
	for i, k := range known {
		bare[i] = strings.TrimPrefix(k, s.prefix)
	}
	listed := strings.Join(known[:min(len(known), maxListed)], ", ")
	if len(known) > maxListed {
		listed += ", …"
	}
	near := strictyaml.NearestN(strings.TrimPrefix(id, s.prefix), bare, 3)
	if len(near) == 0 {
		return "use one of " + listed
	}
	for i := range near {
		near[i] = s.prefix + near[i]
	}
	return "did you mean " + strings.Join(near, " or ") + "? There are: " + listed
}

func (s shelf[T]) ids() []string { return slices.Sorted(maps.Keys(s.byID)) }

// all returns everything by id, highest version first.
func (s shelf[T]) all() []T {
	var all []T
	for _, id := range s.ids() {
		all = append(all, s.byID[id]...)
	}
	return all
}
