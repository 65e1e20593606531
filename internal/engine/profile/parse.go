package profile

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// Parse reads one profile. The error is an *extensions.Error of KindInvalid
// that holds strictyaml.Errors: every mistake with its place. What depends on
// ancestors is for Set.Flatten to find.
func Parse(file string, data []byte) (*Profile, error) {
	p := &Profile{file: file}
	pos, err := strictyaml.DecodePositions(file, data, p)
	p.pos = pos
	if !pos.Known() {
		return p, err
	}
	later := check(p)
	if err == nil && p.Extends == nil {
		later = append(later, strictyaml.Collect(file, checkWhole(p))...)
	}
	return p, withChecks(file, err, later)
}

// withChecks adds what checking found to what decoding did. A value that was
// not read is not judged again.
func withChecks(file string, decoded error, later strictyaml.Errors) error {
	found := strictyaml.Collect(file, decoded)
	for _, e := range later {
		if !slices.ContainsFunc(found, func(f *strictyaml.Error) bool { return f.Line == e.Line && f.Column == e.Column }) {
			found = append(found, e)
		}
	}
	return found.Err()
}
