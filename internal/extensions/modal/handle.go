package modal

import (
	"context"
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
	if h.Extension != Handler || h.Version != handleVersion {
		return extensions.Errorf(extensions.KindInvalid, "the handle is for %s version %d, this is %s version %d",
			h.Extension, h.Version, Handler, handleVersion)
	}
	if h.Ref != "" && !refName.MatchString(h.Ref) {
		return extensions.Errorf(extensions.KindInvalid, "%q is not a sandbox of %s", extensions.Clean(h.Ref, 80), vendor)
	}
	var w where
	if h.Ref != "" && (json.Unmarshal(h.Data, &w) != nil || w.Backend != backendOf(h.Ref)) {
		return extensions.Errorf(extensions.KindInvalid, "the handle does not say which backend of %s has %s", vendor, h.Ref)
	}
	_, err := extensions.ParseID(string(h.ID))
	return err
}

// ref returns the vendor's name for a handle's sandbox, looked up by our id if a lost answer left the handle
// without it.
func (b *backend) ref(ctx context.Context, h extensions.Handle) (string, error) {
	if err := checkHandle(h); err != nil || h.Ref != "" {
		return h.Ref, err
	}
	return b.named(ctx, h.ID)
}
