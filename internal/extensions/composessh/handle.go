package composessh

import (
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// handleData is what else is needed to find a sandbox on its host: where the
// binding's config keeps sandboxes, so that a later change of it loses none.
type handleData struct {
	Root string `json:"root,omitempty"` // "" = ~/.sandboxer of the login
}

func (b *Backend) handle(id extensions.ID) extensions.Handle {
	data, _ := json.Marshal(handleData{Root: b.settings.root}) // a string cannot fail
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: string(id), Data: data}
}

// place is a sandbox that a handle names.
type place struct {
	id   extensions.ID
	root string
}

// resolve checks that h is a handle of ours.
func (b *Backend) resolve(h extensions.Handle) (place, error) {
	if h.Extension != Handler || h.Version < 1 || h.Version > handleVersion || h.Ref != string(h.ID) {
		return place{}, extensions.Errorf(extensions.KindInvalid, "this is not a handle of %s that this version reads", Handler)
	}
	if _, err := extensions.ParseID(string(h.ID)); err != nil {
		return place{}, err
	}
	d := handleData{Root: b.settings.root}
	if len(h.Data) > 0 {
		d.Root = ""
		if err := json.Unmarshal(h.Data, &d); err != nil {
			return place{}, extensions.Errorf(extensions.KindInvalid, "the handle's data cannot be read: %w", err)
		}
	}
	return place{id: h.ID, root: d.Root}, checkRoot(d.Root)
}
