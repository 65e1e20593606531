package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

type decoder struct {
	file string
	errs Errors
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	d.suggest(n, "", format, args...)
}

func (d *decoder) suggest(n *yaml.Node, suggestion, format string, args ...any) {
	if len(d.errs) < maxFound {
		d.errs = append(d.errs, &Error{File: d.file, Line: n.Line, Column: n.Column, Msg: fmt.Sprintf(format, args...), Suggestion: suggestion})
	}
}

var (
	unmarshalerType = reflect.TypeFor[Unmarshaler]()
	textType        = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value decodes the node into v, which is settable.
func (d *decoder) value(at *yaml.Node, v reflect.Value) {
	n := target(at)
	if n.Style&yaml.TaggedStyle != 0 {
		d.fail(n, "tags such as %s are not accepted; put text in quotes instead", shown(n.Tag))
		return
	}
	if isNull(n) && nilable(v) {
		v.SetZero()
		return
	}
	if v.Kind() == reflect.Pointer {
		fresh := reflect.New(v.Type().Elem())
		before := len(d.errs)
		d.value(at, fresh.Elem())
		if len(d.errs) == before || fresh.Elem().Kind() == reflect.Struct && n.Kind == yaml.MappingNode {
			v.Set(fresh) // correct parts of a section are kept
		}
		return
	}
	switch {
	case v.Addr().Type().Implements(unmarshalerType):
		if err := v.Addr().Interface().(Unmarshaler).UnmarshalStrict(Node{d: d, at: at}); err != nil {
			d.fail(at, "%s", Message(err))
		}
	case v.Addr().Type().Implements(textType):
		d.text(at, v.Addr().Interface().(encoding.TextUnmarshaler))
	default:
		d.plain(at, v)
	}
}

func (d *decoder) plain(at *yaml.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.structure(at, v)
	case reflect.Map:
		d.mapping(at, v)
	case reflect.Slice:
		d.list(at, v)
	case reflect.Interface:
		if x, ok := d.free(at); ok && x != nil {
			v.Set(reflect.ValueOf(x))
		}
	default:
		d.scalar(at, v)
	}
}

func (d *decoder) text(at *yaml.Node, u encoding.TextUnmarshaler) {
	n := target(at)
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.fail(at, "want text, got %s", describe(n))
		return
	}
	if !d.printable(at) {
		return
	}
	if err := u.UnmarshalText([]byte(n.Value)); err != nil {
		d.fail(at, "%s", Message(err))
	}
}

func (d *decoder) structure(at *yaml.Node, v reflect.Value) {
	fields := fieldsOf(v.Type())
	d.pairs(at, func(key, val *yaml.Node) {
		name := target(key).Value
		if i, ok := fields.index[name]; ok {
			d.value(val, v.Field(i))
			return
		}
		if near := Nearest(name, fields.names); near != "" {
			d.suggest(key, near, "unknown key %q", shown(name))
			return
		}
		d.fail(key, "unknown key %q; known here: %s", shown(name), strings.Join(fields.names, ", "))
	})
}

func (d *decoder) mapping(at *yaml.Node, v reflect.Value) {
	out := reflect.MakeMap(v.Type())
	d.pairs(at, func(key, val *yaml.Node) {
		fresh := reflect.New(v.Type().Elem()).Elem()
		d.value(val, fresh)
		out.SetMapIndex(reflect.ValueOf(target(key).Value).Convert(v.Type().Key()), fresh)
	})
	v.Set(out)
}

func (d *decoder) list(at *yaml.Node, v reflect.Value) {
	n := target(at)
	if n.Kind != yaml.SequenceNode {
		d.fail(at, "want a list, got %s", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, out.Index(i))
	}
	v.Set(out)
}

// pairs calls each for every well-formed key of a mapping.
func (d *decoder) pairs(at *yaml.Node, each func(key, val *yaml.Node)) {
	n := target(at)
	if n.Kind != yaml.MappingNode {
		d.fail(at, "want a mapping, got %s", describe(n))
		return
	}
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		k := target(key)
		switch {
		case k.Tag == "!!merge":
			d.fail(key, "merge keys (<<) are not accepted")
		case k.Kind != yaml.ScalarNode || k.Style&yaml.TaggedStyle != 0 || isNull(k):
			d.fail(key, "want text as a key, got %s", describe(k))
		case len(k.Value) > maxKey:
			d.fail(key, "a key of %d bytes; at most %d are accepted", len(k.Value), maxKey)
		case k.Value == "" || strings.ContainsFunc(k.Value, func(r rune) bool { return unprintable(r) || r == '\n' || r == '\t' }):
			d.fail(key, "key %q is empty or has control characters", shown(k.Value))
		case first[k.Value] != nil:
			d.fail(key, "key %q is already set on line %d", shown(k.Value), first[k.Value].Line)
		default:
			first[k.Value] = key
			each(key, n.Content[i+1])
		}
	}
}

type fieldSet struct {
	index map[string]int
	names []string
}

func fieldsOf(t reflect.Type) fieldSet {
	set := fieldSet{index: map[string]int{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		set.index[name] = i
		set.names = append(set.names, name)
	}
	slices.Sort(set.names)
	return set
}

func nilable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	}
	return false
}
