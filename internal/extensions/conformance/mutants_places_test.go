package conformance

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

var placeMutants = map[string]mutant{
	"places/runs-at-each": {open: func(b *broken, err error) (extensions.Backend, error) {
		if err == nil && b.cfg.Host != nil {
			err = extensions.Errorf(extensions.KindUnsupported, "only this machine")
		}
		return b, err
	}},
	"places/refuses-others": {describe: func(d *extensions.Descriptor) { d.Places = []extensions.Place{extensions.PlaceMachine} }},
}
