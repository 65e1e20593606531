package profile

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// Parse reads one profile. The error is an *extensions.Error of KindInvalid that wraps strictyaml.Errors:
// every mistake with its position. Set.Flatten finds what depends on ancestors.
func Parse(file string, data []byte) (*Profile, error) {
	p := &Profile{file: file}
	pos, err := strictyaml.DecodePositions(file, data, p)
	p.pos = pos
	if !pos.Known() {
		return p, err
	}
	deferred, wrong := placeholders(pos)
	later := check(p, deferred)
	if err == nil && len(wrong) == 0 && p.Extends == nil {
		later = append(later, strictyaml.Collect(file, checkWhole(p))...)
	}
	err = withChecks(wrong, strictyaml.Collect(file, err), later)
	p.wrong = err != nil
	return p, err
}

// withChecks joins the mistakes of misplaced placeholders, decoding and checking, in this order; each
// position is reported once.
func withChecks(misplaced, decoded, later strictyaml.Errors) error {
	found := misplaced
	for _, e := range decoded {
		if !told(misplaced, e) {
			found = append(found, e)
		}
	}
	for _, e := range later {
		if !told(found, e) {
			found = append(found, e)
		}
	}
	return found.Err()
}

func told(found strictyaml.Errors, e *strictyaml.Error) bool {
	return slices.ContainsFunc(found, func(f *strictyaml.Error) bool { return f.Line == e.Line && f.Column == e.Column })
}
