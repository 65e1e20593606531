package profile

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"

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
	return p, append(strictyaml.Collect(file, err), check(p)...).Err()
}
