package engine

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type (
	// Exposure is what sandboxes of a profile may touch outside of themselves.
	Exposure = profile.Exposure
	// Purse is an exact limit on what several sandboxes may cost together.
	Purse = account.Purse
	// Share is what a [Purse] sets aside for one sandbox.
	Share = account.Share
)

// NewPurse returns a purse with a limit such as "5.00 USD"; anything else is KindInvalid.
func NewPurse(limit string) (*Purse, error) { return account.NewPurse(limit) }

// Exposure reads the profile of a reference, "profile.x" or "profile.x@1.0.0". It returns KindInvalid if there is none.
func (e *Engine) Exposure(ref string) (ProfileView, Exposure, error) {
	p, err := e.catalog.Profiles.Lookup(ref)
	if err != nil {
		return ProfileView{}, Exposure{}, extensions.AtField("profile", err)
	}
	if p, _, err = e.catalog.Profiles.Flatten(p); err != nil {
		return ProfileView{}, Exposure{}, err
	}
	return profileView(p), p.Exposure(), nil
}
