package vercel

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

const handleVersion = 1

// handle points to a sandbox. Its name at the vendor is our id, so it is known before the sandbox exists.
func handle(id extensions.ID) extensions.Handle {
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: string(id)}
}
