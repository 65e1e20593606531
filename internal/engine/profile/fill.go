package profile

import (
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxFilled limits, in bytes, the texts of one profile with values filled in: a value may occur many
// times.
const maxFilled = 1 << 20

// use is one placeholder of a profile.
type use struct {
	path  []string
	input string
}

// uses returns the placeholders of p, by path.
func (p *Profile) uses() []use {
	var out []use
	p.mapTexts(func(path []string, text string) string {
		pieces, _ := parsePlaceholders(text) // Parse refused what is malformed
		for _, piece := range pieces {
			if piece.input != "" {
				out = append(out, use{path: path, input: piece.input})
			}
		}
		return text
	})
	slices.SortFunc(out, func(a, b use) int { return slices.Compare(a.path, b.path) })
	return out
}

// reached returns the names of the inputs whose values reach a sandbox of p: those that placeholders name,
// and the workspace's source.
func (p *Profile) reached() map[string]bool {
	out := map[string]bool{}
	for _, u := range p.uses() {
		out[u.input] = true
	}
	text := func(name string) bool {
		in, declared := p.Inputs[name]
		return declared && value(in.Type, "") == TypeString
	}
	if text(InputRepo) && workspaceOf(p).Access != extensions.AccessNone {
		out[InputRepo] = true
		out[InputRef] = out[InputRef] || text(InputRef)
	}
	return out
}

func (c *checker) wholePlaceholders() {
	for _, u := range c.p.uses() {
		if _, declared := c.p.Inputs[u.input]; declared {
			continue
		}
		names := slices.Sorted(maps.Keys(c.p.Inputs))
		e := c.fail(u.path, "%s uses the input %s, which %s does not declare", shownPath(u.path), u.input, c.p.ID)
		if e.Suggestion = strictyaml.Nearest(u.input, names); e.Suggestion == "" && len(names) > 0 {
			e.Msg += ": it declares " + extensions.Clean(strings.Join(names, ", "), 200)
		}
	}
}

// CheckInputs finds declared inputs that nothing uses, neither their own profile nor one that extends it. wrong are
// profiles whose Parse failed: the mistakes of one file are told together.
func (s *Set) CheckInputs(wrong []*Profile) (errs strictyaml.Errors) {
	all := NewSet()
	for _, p := range slices.Concat(s.profiles.all(), wrong) {
		all.Add(p)
	}
	reached := map[*Profile]map[string]bool{} // by the declaring profile
	for _, p := range all.profiles.all() {
		chain, err := all.chain(p)
		if err != nil {
			continue // flattening reports it
		}
		uses := merged(chain).reached()
		for _, c := range chain {
			if reached[c] == nil {
				reached[c] = map[string]bool{}
			}
			maps.Copy(reached[c], uses)
			for name := range c.Inputs {
				reached[c][name] = reached[c][name] || slices.ContainsFunc(chain, func(p *Profile) bool { return p.wrong && p.mentions(name) })
			}
		}
	}
	for _, p := range all.profiles.all() {
		for _, name := range slices.Sorted(maps.Keys(p.Inputs)) {
			if known := reached[p]; known == nil || known[name] {
				continue
			}
			errs = append(errs, p.Errorf([]string{"inputs", name}, "nothing uses the input %s: no field contains {{input.%s}}", name, name))
		}
	}
	return errs
}

// mentions reports that some text of a file has a placeholder that may mean the input, even a wrong one in a wrong field.
func (p *Profile) mentions(input string) (found bool) {
	p.pos.Texts(func(_ []string, text string, _ bool) {
		found = found || opening.MatchString(text) && strings.Contains(text, input)
	})
	return found
}

// IdleInputs returns the sorted names of given inputs that the profile ref does not use.
func (s *Set) IdleInputs(ref string, given map[string]any) (idle []string) {
	if len(given) == 0 {
		return nil
	}
	flat := s.flat(ref)
	if flat == nil {
		return nil
	}
	reached := flat.reached()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, declared := flat.Inputs[name]; declared && given[name] != nil && !reached[name] {
			idle = append(idle, name)
		}
	}
	return idle
}

// inputs checks what was given and fills the values into the profile, which is then checked as if its file
// contained them.
func (r *resolver) inputs() map[string]any {
	got, errs := resolveInputs(r.p.Ref(), r.p.Inputs, r.req.Inputs)
	named := map[string][]string{} // inputs by field
	for _, u := range r.p.uses() {
		at := shownPath(u.path)
		named[at] = append(named[at], "inputs."+u.input)
		if _, has := got[u.input]; !has && len(errs) == 0 {
			errs = append(errs, invalid("%[3]s uses the input %[1]s of %[2]s, which has no value", u.input, r.p.Ref(), at).
				WithRemedy("set inputs.%s (%s)", u.input, *r.p.Inputs[u.input].Type).At("inputs"))
		}
	}
	if r.errs = append(r.errs, errs...); len(errs) > 0 {
		return got
	}
	left := maxFilled
	filled := r.p.mapTexts(func(path []string, text string) string {
		text = fill(path, text, got, left)
		left -= len(text)
		return text
	})
	if left < 0 {
		r.fail(invalid("%s with its inputs has more than %d bytes", r.p.Ref(),
			maxFilled).WithRemedy("pass large content as files of the workspace").At("inputs"))
		return got
	}
	r.p = filled
	r.judge(named)
	return got
}

// judge checks the values where they now stand. Fields without placeholders were checked with their file;
// an heir may repeat what one file may not.
func (r *resolver) judge(named map[string][]string) {
	c := newChecker(r.p)
	c.values()
	for i, e := range c.errs {
		at := shownPath(c.at[i])
		by := named[at]
		for field, inputs := range named {
			if strings.HasPrefix(field, at+"[") { // an entry of the list
				by = slices.Concat(by, inputs)
			}
		}
		if len(by) == 0 {
			continue
		}
		slices.Sort(by)
		by = slices.Compact(by)
		r.fail(invalid("%s of %s, filled from %s: %s", at, r.p.Ref(), strings.Join(by, " and "), e.Msg).At(by[0]))
	}
}

// fill replaces placeholders by values and cuts what exceeds most just above it. Values are not parsed
// again: what looks like a placeholder in one, or in toolchain.env like a variable, is text.
func fill(path []string, text string, values map[string]any, most int) string {
	pieces, _ := parsePlaceholders(text) // Parse refused what is malformed
	var b strings.Builder
	for _, p := range pieces {
		switch {
		case b.Len() > most:
			return b.String()
		case p.input == "":
			b.WriteString(p.text)
		case path[0] == "toolchain":
			b.WriteString(strings.ReplaceAll(inputText(values[p.input]), "$", "$$"))
		default:
			b.WriteString(inputText(values[p.input]))
		}
	}
	return b.String()
}
