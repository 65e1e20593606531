package engine

import (
	"maps"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
)

// ProfileView is one profile of the catalog with its ancestors merged in.
type ProfileView struct {
	ID        string `json:"id"`
	Version   string `json:"version"`
	Extension string `json:"extension"` // the pinned binding, or ""
	// CostClass and LatencyClass are labels, "" = none: nothing is chosen by them.
	CostClass    string             `json:"cost_class"`
	LatencyClass string             `json:"latency_class"`
	Inputs       []ProfileInputView `json:"inputs"`
}

// ProfileInputView is one declared input.
type ProfileInputView struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	Default  any    `json:"default"` // nil = none
	Doc      string `json:"doc"`
}

// Profiles lists the catalog's profiles by id, the highest version first.
func (e *Engine) Profiles() ([]ProfileView, error) {
	out := []ProfileView{}
	for _, p := range e.catalog.Profiles.All() {
		flat, _, err := e.catalog.Profiles.Flatten(p)
		if err != nil {
			return nil, err
		}
		out = append(out, profileView(flat))
	}
	return out, nil
}

func profileView(p *profile.Profile) ProfileView {
	v := ProfileView{ID: p.ID, Version: p.Version, Extension: orEmpty(p.Extension), Inputs: []ProfileInputView{}}
	if m := p.Metadata; m != nil {
		v.CostClass, v.LatencyClass = orEmpty(m.CostClass), orEmpty(m.LatencyClass)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Inputs)) {
		in := p.Inputs[name]
		v.Inputs = append(v.Inputs, ProfileInputView{Name: name, Type: orEmpty(in.Type), Required: in.Required != nil && *in.Required, Default: in.Default, Doc: orEmpty(in.Doc)})
	}
	return v
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
