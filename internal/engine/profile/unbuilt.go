package profile

import (
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// UnbuiltFields are those that the schema knows and nothing carries out yet: a
// setting that is accepted is a setting that holds.
var UnbuiltFields = []string{"scope_default", "ttl.idle_reap"}

// unbuilt tells which of them a profile sets.
func (p *Profile) unbuilt(field string) bool {
	switch field {
	case "scope_default":
		return value(p.ScopeDefault, ScopeSession) != ScopeSession
	case "ttl.idle_reap":
		return duration(value(p.TTL, TTL{}).IdleReap) > 0
	}
	return false
}

// Unbuilt names the fields of the profile ref, ancestors merged in, that nothing
// carries out yet.
func (s *Set) Unbuilt(ref string) (fields []string) {
	flat := s.flat(ref)
	if flat == nil {
		return nil
	}
	for _, field := range UnbuiltFields {
		if flat.unbuilt(field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// CheckUnbuilt finds the profiles of which no sandbox can be made, for what
// they or their ancestors say.
func (s *Set) CheckUnbuilt() (errs strictyaml.Errors) {
	for _, p := range s.profiles.all() {
		for _, field := range s.Unbuilt(p.Ref()) {
			if path := strings.Split(field, "."); p.pos.Has(path...) {
				errs = append(errs, p.Errorf(path, "%s is not carried out yet, so no sandbox can be made of it: leave it out", field))
			} else {
				errs = append(errs, p.Errorf([]string{"extends"}, "it inherits %s, which is not carried out yet, so no sandbox can be made of it", field))
			}
		}
	}
	return errs
}
