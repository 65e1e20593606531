package catalog

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

func (ld *loader) addProfile(f file, at home) {
	p, err := parse(f, profile.Parse)
	if err != nil {
		ld.errs = append(ld.errs, strictyaml.Collect(f.name, err)...)
		ld.broken[p.ID] = true
		ld.wrong = append(ld.wrong, p)
		return
	}
	if was, ok := ld.from[p.Ref()]; ok && !overrides(ld, was, p.Errorf([]string{"id"}, ""), p.Ref()) {
		return
	}
	ld.profiles.Add(p)
	ld.homes[p.Ref()] = at
	ld.from[p.Ref()] = entry[string]{value: p.Ref(), file: f.name, layer: ld.layer}
}

func (ld *loader) addKit(f file) {
	k, err := parse(f, profile.ParseKit)
	if err != nil {
		ld.errs = append(ld.errs, strictyaml.Collect(f.name, err)...)
		ld.broken[k.ID] = true
		return
	}
	if was, ok := ld.from[k.Ref()]; ok && !overrides(ld, was, k.Errorf([]string{"id"}, ""), k.Ref()) {
		return
	}
	ld.profiles.AddKit(k)
	ld.from[k.Ref()] = entry[string]{value: k.Ref(), file: f.name, layer: ld.layer}
}

// checkTogether finds mistakes between files. It skips what depends on a broken file, which would only be
// blamed for that file's absence.
func (ld *loader) checkTogether() {
	for _, p := range ld.profiles.All() {
		if id := ld.restsOn(p); id != "" {
			ld.notices = append(ld.notices, p.Errorf([]string{"extends"}, "not fully checked: %s has mistakes itself", id))
			continue
		}
		if _, _, err := ld.profiles.Flatten(p); err != nil {
			ld.errs = append(ld.errs, strictyaml.Collect(p.File(), err)...)
			continue
		}
		for _, ext := range slices.Sorted(maps.Keys(p.Options)) {
			ld.checkOptions(p, ext)
		}
	}
	ld.errs = append(ld.errs, ld.profiles.CheckKits(func(id string) bool { return ld.broken[id] })...)
	ld.checkTunnels()
	ld.checkPolicies()
	ld.checkBooks()
}

// restsOn names the broken profile that p extends, if any.
func (ld *loader) restsOn(p *profile.Profile) string {
	for range 32 { // Flatten reports cycles
		if p.Extends == nil {
			return ""
		}
		id, _, _ := strings.Cut(*p.Extends, "@")
		if ld.broken[id] {
			return id
		}
		parent, err := ld.profiles.Lookup(*p.Extends)
		if err != nil {
			return ""
		}
		p = parent
	}
	return ""
}

// checkInputs tells of inputs that nothing uses, unless something else is wrong with them.
func (ld *loader) checkInputs() {
	for _, e := range ld.profiles.CheckInputs(ld.wrong) {
		at := func(o *strictyaml.Error) bool { return o.File == e.File && o.Line == e.Line && o.Column == e.Column }
		if !slices.ContainsFunc(ld.errs, at) {
			ld.errs = append(ld.errs, e)
		}
	}
}

func (ld *loader) checkOptions(p *profile.Profile, ext string) {
	path := []string{"options", ext}
	if b, ok := ld.bindings[ext]; ok {
		ld.errs = append(ld.errs, checkFields(p, path, b.value.Descriptor.Options, p.Options[ext])...)
		return
	}
	if ld.broken[ext] {
		return
	}
	ld.notices = append(ld.notices, ld.unbound(p.Errorf(path, ""), ext, "these options have no effect"))
}

// unbound reports a missing binding. It is no mistake: catalogs are shared between places with different
// extensions.
func (ld *loader) unbound(at *strictyaml.Error, ext, effect string) *strictyaml.Error {
	at.Msg = "no extension " + strconv.Quote(ext) + " in this catalog: " + effect
	at.Suggestion = strictyaml.Nearest(ext, slices.Sorted(maps.Keys(ld.bindings)))
	return at
}
