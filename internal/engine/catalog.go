package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ProfileView is one profile of the catalog, merged with its ancestors.
type ProfileView struct {
	ID        string `json:"id"`
	Version   string `json:"version"`
	Extension string `json:"extension"` // the pinned binding, or ""
	// CostClass and LatencyClass are labels; routing ignores them. "" = none.
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

// Profile returns the profile that a ref names: "profile.x@1.0.0", or the highest version of "profile.x". It
// returns KindInvalid if there is none.
func (e *Engine) Profile(ref string) (ProfileView, error) {
	p, err := e.catalog.Profiles.Lookup(ref)
	if err != nil {
		return ProfileView{}, extensions.AtField("profile", err)
	}
	flat, _, err := e.catalog.Profiles.Flatten(p)
	if err != nil {
		return ProfileView{}, err
	}
	return profileView(flat), nil
}

// ParseProfile splits a profile's ref, such as "profile.x@1.0.0", into its ID and its version, "" for none.
// Anything else is KindInvalid.
func ParseProfile(ref string) (id, version string, err error) {
	id, version, _ = strings.Cut(ref, "@")
	return id, version, profile.CheckRef(ref)
}

// Binding is one extension of the catalog as it is configured there.
type Binding = catalog.Binding

// Bindings lists the catalog's extensions by ID, without those that tests pretend with.
func (e *Engine) Bindings() []Binding {
	all := slices.DeleteFunc(slices.Clone(e.catalog.Bindings), func(b Binding) bool { return b.Descriptor.NamedOnly })
	slices.SortFunc(all, func(a, b Binding) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// TakesPart reports whether routing considers a binding that no profile pins; see [place.Places.Configured].
func (e *Engine) TakesPart(b Binding) bool { return e.places.Configured(b) }

func profileView(p *profile.Profile) ProfileView {
	v := ProfileView{ID: p.ID, Version: p.Version, Extension: orEmpty(p.Extension), Inputs: []ProfileInputView{}}
	if m := p.Metadata; m != nil {
		v.CostClass, v.LatencyClass = orEmpty(m.CostClass), orEmpty(m.LatencyClass)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Inputs)) {
		in := p.Inputs[name]
		v.Inputs = append(v.Inputs, ProfileInputView{Name: name, Type: orEmpty(in.Type), Required: in.Required != nil && *in.Required,
			Default: in.Default, Doc: orEmpty(in.Doc)})
	}
	return v
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ProfileVersion returns the version of a new sandbox of a profile: the one in "profile.x@1.0.0", or the highest
// of "profile.x". It returns KindInvalid if there is none.
func (e *Engine) ProfileVersion(ref string) (string, error) {
	p, err := e.catalog.Profiles.Lookup(ref)
	if err != nil {
		return "", extensions.AtField("profile", err)
	}
	return p.Version, nil
}

// Problem is one finding of ValidateProfiles; Line and Column count from 1, 0 means the whole file.
type Problem = catalog.Problem

// ValidateProfiles checks one profile, or a catalog folder, on top of the built-in catalog, against the
// declarations of exts. It needs no engine and writes nothing. The problems are sorted by position; the error
// is about unreadable files.
func ValidateProfiles(path string, exts []extensions.Extension) ([]Problem, error) {
	return catalog.ValidatePath(path, exts, time.Now())
}

// ParseDuration reads "90s", "2h30m" or "1d"; anything else is KindInvalid.
func ParseDuration(s string) (time.Duration, error) { return profile.ParseDuration(s) }

// FormatDuration writes d as ParseDuration reads it.
func FormatDuration(d time.Duration) string { return profile.FormatDuration(d) }

// CheckMoney accepts a non-negative decimal, one space and a currency: "0.50 USD". Anything else is KindInvalid.
func CheckMoney(s string) error {
	_, err := meter.ParseMoney(s)
	return err
}

// CheckName checks the name of a sandbox, snapshot or host; see profile.CheckName.
func CheckName(name string) error { return profile.CheckName(name) }
