package extensions

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Descriptor has an extension's static facts. Plans read it; it needs no network
// and no secrets.
type Descriptor struct {
	// Handler is the name catalogs bind to: "local", "compose-ssh".
	Handler string
	Title   string
	// Doc is Markdown for the capability page: where it runs, what it needs,
	// how it expires, what it leaves behind.
	Doc string
	// Places are the kinds of place it runs at, in the order of the constants. An
	// account stands alone: a sandbox there has no host, and neither needs one on
	// this machine.
	Places []Place
	// Native says that a sandbox at PlaceMachine is processes of that very machine: of
	// its operating system and architecture, and, where the network is allowed, on its network.
	Native bool
	// Config are the fields of the binding's config section, Options those a
	// profile may set for it, Credentials the secrets it takes.
	Config      []Field
	Options     []Field
	Credentials []CredentialField
	// CredentialsAnyOf are alternatives: each is a set of names of Credentials, and
	// one complete set is required ("this, or those three"). nil = no alternatives.
	// Open gets the fields of one set only, see Pick.
	CredentialsAnyOf [][]string
	// Capabilities is the ceiling.
	Capabilities Capabilities
	Powers       []Power
	Find         Find
	Snapshots    Snapshots
	Forks        Forks
	Pauses       Pauses
	List         List
	// NamedOnly marks a test double: routing chooses it only if a profile names it.
	NamedOnly bool
}

// Has reports whether d declares the power.
func (d Descriptor) Has(p Power) bool { return slices.Contains(d.Powers, p) }

// RunsAt reports whether d declares the kind of place.
func (d Descriptor) RunsAt(p Place) bool { return slices.Contains(d.Places, p) }

// PlaceOf returns the kind of place that host h is for d; nil stands for an
// account, or for this machine. If d does not run there, ok is false and p is d's
// first declared place.
func (d Descriptor) PlaceOf(h *Host) (p Place, ok bool) {
	switch {
	case d.RunsAt(PlaceAccount):
		return PlaceAccount, h == nil
	case h == nil || h.Local:
		p = PlaceMachine
	default:
		p = PlaceHost
	}
	if !d.RunsAt(p) {
		return d.Places[0], false
	}
	return p, true
}

// FieldType is the type of a config or option field.
type FieldType string

const (
	FieldString   FieldType = "string"
	FieldInt      FieldType = "int"
	FieldBool     FieldType = "bool"
	FieldDuration FieldType = "duration" // "90s", "2h", "1d"
	FieldPath     FieldType = "path"     // absolute, below /, without ".."
	FieldStrings  FieldType = "strings"  // list of string
	FieldMap      FieldType = "map"      // string to string
	FieldJSON     FieldType = "json"     // anything YAML can say, checked by the adapter
)

// Field declares one config or option key.
type Field struct {
	Name     string
	Type     FieldType
	Required bool
	Enum     []string       // for FieldString; empty = any
	Form     *regexp.Regexp // for FieldString; nil = any
	Max      int64          // for FieldInt, which is then at least 1; 0 = any
	Doc      string
}

// Text returns the value of a FieldString or FieldPath field; "" if it is not set.
func Text(values map[string]any, field string) string {
	s, _ := values[field].(string)
	return s
}

// CheckFields checks values against the declared fields: unknown keys, wrong
// types, values outside an enum, missing required keys. The error is
// KindInvalid and names the key and the declared ones. Numbers may be int,
// int64 or a whole float64 (as JSON decodes them).
func CheckFields(section string, fields []Field, values map[string]any) error {
	byName := map[string]Field{}
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		byName[f.Name] = f
		names = append(names, f.Name)
	}
	slices.Sort(names)
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		f, ok := byName[k]
		if !ok {
			known := "it takes none"
			if len(names) > 0 {
				known = "it takes " + strings.Join(names, ", ")
			}
			return Errorf(KindInvalid, "%s: unknown key %q; %s", section, k, known)
		}
		if err := f.check(values[k]); err != nil {
			return Errorf(KindInvalid, "%s.%s: %w", section, k, err).At(section + "." + k)
		}
	}
	for _, f := range fields {
		if _, ok := values[f.Name]; f.Required && !ok {
			return Errorf(KindInvalid, "%s.%s is required: %s", section, f.Name, f.Doc)
		}
	}
	return nil
}

// Whole returns a FieldInt value checked by CheckFields, or the default.
func Whole(v any, otherwise int64) int64 {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return otherwise
}

// Strings returns a FieldStrings value checked by CheckFields, or the default.
func Strings(v any, otherwise ...string) []string {
	list, ok := v.([]any)
	if !ok {
		return otherwise
	}
	all := make([]string, 0, len(list))
	for _, e := range list {
		text, _ := e.(string)
		all = append(all, text)
	}
	return all
}

func (f Field) check(v any) error {
	ok := false
	switch f.Type {
	case FieldString, FieldDuration:
		var s string
		if s, ok = v.(string); ok && len(f.Enum) > 0 && !slices.Contains(f.Enum, s) {
			return fmt.Errorf("%q is not one of %s", s, strings.Join(f.Enum, ", "))
		}
		if ok && s != "" && f.Form != nil && !f.Form.MatchString(s) {
			return fmt.Errorf("%q is no %s: %s", Clean(s, 80), f.Name, f.Doc)
		}
	case FieldPath:
		var s string
		if s, ok = v.(string); ok && s != "" && !belowRoot(s) {
			return fmt.Errorf("%q is not an absolute path below /", Clean(s, 80))
		}
	case FieldInt:
		switch n := v.(type) {
		case int, int64:
			ok = true
		case float64:
			ok = n == float64(int64(n))
		}
		if n := Whole(v, 0); ok && f.Max > 0 && (n < 1 || n > f.Max) {
			return fmt.Errorf("%d is not between 1 and %d", n, f.Max)
		}
	case FieldBool:
		_, ok = v.(bool)
	case FieldStrings:
		var list []any
		if list, ok = v.([]any); ok {
			ok = !slices.ContainsFunc(list, func(e any) bool { _, s := e.(string); return !s })
		}
	case FieldMap:
		var m map[string]any
		if m, ok = v.(map[string]any); ok {
			for _, e := range m {
				if _, s := e.(string); !s {
					ok = false
				}
			}
		}
	case FieldJSON:
		ok = true
	}
	if !ok {
		return fmt.Errorf("want %s, got %T", f.Type, v)
	}
	return nil
}

func belowRoot(at string) bool {
	return path.IsAbs(at) && path.Clean(at) != "/" && !slices.Contains(strings.Split(at, "/"), "..")
}
