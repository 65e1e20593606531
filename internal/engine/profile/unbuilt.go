package profile

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// unbuilt are the fields that the schema knows and nothing carries out yet: a
// setting that is accepted is a setting that holds.
var unbuilt = []struct {
	path []string
	set  func(*Profile) bool
}{
	{[]string{"scope_default"}, func(p *Profile) bool { return value(p.ScopeDefault, ScopeSession) != ScopeSession }},
	{[]string{"ttl", "idle_reap"}, func(p *Profile) bool { return duration(value(p.TTL, TTL{}).IdleReap) > 0 }},
}

// UnbuiltFields are the fields with values that nothing carries out yet.
func UnbuiltFields() (fields []string) {
	for _, u := range unbuilt {
		fields = append(fields, shownPath(u.path))
	}
	return fields
}

// Unbuilt names the fields of the profile ref, ancestors merged in, that nothing
// carries out yet.
func (s *Set) Unbuilt(ref string) (fields []string) {
	flat := s.flat(ref)
	if flat == nil {
		return nil
	}
	for _, u := range unbuilt {
		if u.set(flat) {
			fields = append(fields, shownPath(u.path))
		}
	}
	return fields
}

// CheckUnbuilt finds the profiles of which no sandbox can be made, for what
// they or their ancestors say.
func (s *Set) CheckUnbuilt() (errs strictyaml.Errors) {
	for _, p := range s.profiles.all() {
		fields := s.Unbuilt(p.Ref())
		for _, u := range unbuilt {
			switch name := shownPath(u.path); {
			case !slices.Contains(fields, name):
			case p.pos.Has(u.path...):
				errs = append(errs, p.Errorf(u.path, "%s is not carried out yet, so no sandbox can be made of it: leave it out", name))
			default:
				errs = append(errs, p.Errorf([]string{"extends"}, "it inherits %s, which is not carried out yet, so no sandbox can be made of it", name))
			}
		}
	}
	return errs
}
