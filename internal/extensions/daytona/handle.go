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
