package profile

import (
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// UnbuiltFields are fields of the schema that nothing carries out yet: a setting that is accepted is a
// setting that holds.
var UnbuiltFields = []string{"ttl.idle_reap"}

// unbuilt reports whether a profile sets the field.
func (p *Profile) unbuilt(field string) bool {
	return field == "ttl.idle_reap" && duration(value(p.TTL, TTL{}).IdleReap) > 0
}

// Unbuilt names the fields of the profile ref, ancestors merged in, that nothing carries out yet.
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

// CheckUnbuilt finds the profiles of which no sandbox can be made because they or their ancestors set such
// fields.
func (s *Set) CheckUnbuilt() (errs strictyaml.Errors) {
	for _, p := range s.profiles.all() {
		for _, field := range s.Unbuilt(p.Ref()) {
			if path := strings.Split(field, "."); p.pos.Has(path...) {
				errs = append(errs, p.Errorf(path, "%s is not available yet, so the profile cannot create a sandbox: remove it", field))
			} else {
				errs = append(errs, p.Errorf([]string{"extends"}, "it inherits %s, which is not available yet, so the profile cannot create a sandbox",
					field))
			}
		}
	}
	return errs
}
