package modal

import (
	"encoding/json"
	"regexp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// The vendor's names of sandboxes. Those of V1 have one length, as the vendor's SDK tells them apart; all others are
// V2's.
var (
	refName = regexp.MustCompile(`^sb-[A-Za-z0-9]{1,60}$`)
	refOfV1 = regexp.MustCompile(`^sb-[A-Za-z0-9]{22}$`)
)

// backendOf is the vendor's backend that has a sandbox: 1 or 2.
func backendOf(ref string) int {
	if refOfV1.MatchString(ref) {
		return 1
	}
	return 2
}

// where is the adapter's part of a handle.
type where struct {
	Backend int `json:"backend"` // the vendor's: 1 or 2
}

// handle points to a sandbox; ref is empty while only our id is known.
func handle(id extensions.ID, ref string) extensions.Handle {
	h := extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: ref}
	if ref != "" {
		h.Data, _ = json.Marshal(where{Backend: backendOf(ref)}) // a number
	}
	return h
}

func checkHandle(h extensions.Handle) error {
	if err := h.CheckRef(Handler, handleVersion, refName); err != nil || h.Ref == "" {
		return err
	}
	var w where
	if json.Unmarshal(h.Data, &w) != nil || w.Backend != backendOf(h.Ref) {
		return extensions.Errorf(extensions.KindInvalid, "the handle does not say which backend of %s has %s", vendor, h.Ref)
	}
	return nil
}
