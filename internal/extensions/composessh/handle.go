package composessh

import (
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// handleData is what else it takes to find a sandbox on its host: where the binding's config puts sandboxes,
// so that changing it later loses none.
type handleData struct {
	Root string `json:"root,omitempty"` // "" = ~/.sandboxer of the login
}

func (b *Backend) handle(id extensions.ID) extensions.Handle {
	data, _ := json.Marshal(handleData{Root: b.settings.root}) // a string cannot fail
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: string(id), Data: data}
}

// target is the sandbox that a handle names.
type target struct {
	id   extensions.ID
	root string
}

// resolve checks that h is a handle of this extension.
func (b *Backend) resolve(h extensions.Handle) (target, error) {
	if h.Extension != Handler || h.Version < 1 || h.Version > handleVersion || h.Ref != string(h.ID) {
		return target{}, extensions.Errorf(extensions.KindInvalid, "this version does not read this handle of %s", Handler)
	}
	if _, err := extensions.ParseID(string(h.ID)); err != nil {
		return target{}, err
	}
	d := handleData{Root: b.settings.root}
	if len(h.Data) > 0 {
		d.Root = ""
		if err := json.Unmarshal(h.Data, &d); err != nil {
			return target{}, extensions.Errorf(extensions.KindInvalid, "the handle's data cannot be read: %w", err)
		}
	}
	return target{id: h.ID, root: d.Root}, checkRoot(d.Root)
}
