package compose

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// policer walks a loaded model. Every field of every type in it must be classified (see fields). An
// unclassified field that is set is refused, so that a field which a later library adds starts out refused.
type policer struct {
	*loading
	project *types.Project
	fields  map[reflect.Type]class // the table; its checks use it to walk on
}

// check judges a set field. where is its place in the model.
type check func(p *policer, where string, v reflect.Value)

// police finds everything the model is refused for, including in services that the profiles leave out.
func (l *loading) police(project *types.Project) {
	p := &policer{loading: l, project: project, fields: fields}
	p.walk("", reflect.ValueOf(project))
}

// walk judges a value and everything below it.
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
		// A plain value below a field that is classified for walking.
	}
}

func (p *policer) walkStruct(where string, v reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || v.Field(i).IsZero() {
			continue // no file can set the one; the other says nothing
		}
		at := where
		if !f.Anonymous {
			at = join(where, yamlName(f))
		}
		judge, ok := p.fields[t][f.Name]
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

// shown formats a path of the model roughly as the file wrote it.
func shown(p string) string {
	if rel, ok := strings.CutPrefix(p, Root+"/"); ok {
		return "./" + rel
	}
	return p
}
