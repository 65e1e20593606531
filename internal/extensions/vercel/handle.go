package vercel

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

const handleVersion = 1

// handle points to a sandbox. Its name at the vendor is our id, so it is known before the sandbox exists.
func handle(id extensions.ID) extensions.Handle {
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: string(id)}
}

func checkHandle(h extensions.Handle) error {
	if h.Extension != Handler || h.Version != handleVersion {
		return extensions.Errorf(extensions.KindInvalid, "the handle is for %s version %d, this is %s version %d",
			h.Extension, h.Version, Handler, handleVersion)
	}
	if _, err := extensions.ParseID(string(h.ID)); err != nil {
		return err
	}
	_, err := extensions.ParseID(h.Ref)
	return err
}
