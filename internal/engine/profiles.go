package engine

import (
	"gopkg.in/yaml.v3"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ProfileText is a profile merged with its ancestors, as a file of a catalog would say it.
type ProfileText struct {
	ProfileView
	File    string         `json:"file"`
	Lineage []string       `json:"lineage"` // "id@version" of it and its ancestors, nearest first
	Profile map[string]any `json:"profile"` // what Text says
	Text    string         `json:"-"`       // YAML that extends nothing
}

// ProfileText returns the profile that a ref names: "profile.x@1.0.0", or the highest version of "profile.x". It
// returns KindInvalid if there is none.
func (e *Engine) ProfileText(ref string) (ProfileText, error) {
	p, err := e.catalog.Profiles.Lookup(ref)
	if err != nil {
		return ProfileText{}, extensions.AtField("profile", err)
	}
	flat, lineage, err := e.catalog.Profiles.Flatten(p)
	if err != nil {
		return ProfileText{}, err
	}
	whole := *flat
	whole.Extends = nil
	text, err := whole.Text()
	if err != nil {
		return ProfileText{}, err
	}
	v := ProfileText{ProfileView: profileView(flat), File: p.File(), Lineage: lineage, Text: string(text)}
	return v, yaml.Unmarshal(text, &v.Profile)
}

// Exposure is what sandboxes of a profile may touch outside of themselves.
type Exposure = profile.Exposure

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
