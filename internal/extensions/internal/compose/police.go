package compose

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// policer walks a loaded model. Every field of every type in it must be
// classified (see fields); one that is not and that is set is refused, so that
// a field a later library adds starts out refused.
type policer struct {
	*loading
	project *types.Project
	binds   []bind
}

// check judges a field that is set. where is its place in the model.
type check func(p *policer, where string, v reflect.Value)

// police finds everything the model is refused for, in the services that the
// profiles leave out too.
func (l *loading) police(project *types.Project) {
	p := &policer{loading: l, project: project}
	p.walk("", reflect.ValueOf(project))
	p.nested()
}

// walk judges a value and what is below it.
func (p *policer) walk(where string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			p.walk(where, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			p.walk(fmt.Sprintf("%s[%d]", where, i), v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			p.walk(join(where, k.String()), v.MapIndex(k))
		}
	case reflect.Struct:
		p.walkStruct(where, v)
	default:
		// A plain value below a field that is classified to be walked.
	}
}

func (p *policer) walkStruct(where string, v reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || v.Field(i).IsZero() {
			continue // nothing a file says reaches the one; the other says nothing
		}
		at := where
		if !f.Anonymous {
			at = join(where, yamlName(f))
		}
		judge, ok := fields[t][f.Name]
		if !ok {
			p.found.refuse("unknown-field", at, "the field is not known to be harmless")
			continue
		}
		judge(p, at, v.Field(i))
	}
}

func join(where, key string) string {
	if where == "" {
		return key
	}
	return where + "." + key
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if name == "" || name == "-" {
		return strings.ToLower(f.Name)
	}
	return name
}

// shown is a path of the model as the file wrote it, more or less.
func shown(p string) string {
	if rel, ok := strings.CutPrefix(p, Root+"/"); ok {
		return "./" + rel
	}
	return p
}

// bind is a folder or file of the bundle that a container gets.
type bind struct {
	where, source string
	writable      bool
}

// NestedBind is a bind whose source lies inside a folder that a container may
// write.
type NestedBind struct {
	Where  string // services.web.volumes[0]
	Source string // relative to the bundle's root
	Inside string // the writable folder, relative to the bundle's root
	// Writable is set where the bind itself may be written.
	Writable bool
}

// nested refuses writable binds inside what another bind lets a container
// write: Docker follows a symbolic link put there, on the host, as root. The
// same holds for read-only binds; those the renderer takes from a copy that no
// container writes.
func (p *policer) nested() {
	for _, n := range nestedBinds(p.binds) {
		if n.Writable {
			p.found.refuseUnless("bind-nested", "", n.Where, quoted("./"+n.Source)+" is inside "+quoted("./"+n.Inside))
		}
	}
}

// NestedBinds lists what enabled services bind (volumes, and the files of
// configs and secrets) from inside what a container may write: another bind's
// source, or one of the given folders, which are relative to the bundle's root.
// Until such a bind is mounted, whoever writes the folder decides what it leads
// to on the host.
func (p *Project) NestedBinds(writable ...string) []NestedBind {
	var all []bind
	add := func(where, source string, writable bool) {
		if rel, ok := strings.CutPrefix(path.Clean(source), Root); ok {
			all = append(all, bind{where: where, source: path.Join(".", rel), writable: writable})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Compose.Services)) {
		s := p.Compose.Services[name]
		for i, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				add(fmt.Sprintf("services.%s.volumes[%d]", name, i), v.Source, !v.ReadOnly)
			}
		}
		for i, c := range s.Configs {
			add(fmt.Sprintf("services.%s.configs[%d]", name, i), p.Compose.Configs[c.Source].File, false)
		}
		for i, c := range s.Secrets {
			add(fmt.Sprintf("services.%s.secrets[%d]", name, i), p.Compose.Secrets[c.Source].File, false)
		}
	}
	for _, w := range writable {
		all = append(all, bind{source: path.Clean(w), writable: true})
	}
	return nestedBinds(all)
}

func nestedBinds(all []bind) []NestedBind {
	var out []NestedBind
	for _, b := range all {
		if b.where == "" {
			continue
		}
		for _, in := range all {
			if in.writable && b.source != in.source && (in.source == "." || strings.HasPrefix(b.source, in.source+"/")) {
				out = append(out, NestedBind{Where: b.where, Source: b.source, Inside: in.source, Writable: b.writable})
				break
			}
		}
	}
	return out
}
