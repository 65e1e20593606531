package daytona

import (
	"regexp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// refName is the form of the vendor's names. They become parts of paths.
var refName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,127}$`)

// handle points to a sandbox; ref is empty while only our id, its name, is known.
func handle(id extensions.ID, ref string) extensions.Handle {
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: ref}
}

func checkHandle(h extensions.Handle) error {
	if h.Ref != "" && !refName.MatchString(h.Ref) {
		return extensions.Errorf(extensions.KindInvalid, "%q is not a sandbox of %s", extensions.Clean(h.Ref, 80), vendor)
	}
	return h.Check(Handler, handleVersion)
}
