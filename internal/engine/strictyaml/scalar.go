package strictyaml

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// scalar decodes text, booleans and numbers without converting between them.
func (d *decoder) scalar(at *yaml.Node, v reflect.Value) {
	n := target(at)
	want := kindName(v.Kind())
	switch {
	case n.Kind != yaml.ScalarNode || isNull(n):
		d.fail(at, "want %s, got %s", want, describe(n))
	case v.Kind() == reflect.String:
		d.str(at, v)
	case v.Kind() == reflect.Bool && n.Tag == "!!bool",
		v.CanInt() && n.Tag == "!!int", v.CanUint() && n.Tag == "!!int",
		v.CanFloat() && (n.Tag == "!!int" || n.Tag == "!!float"):
		fresh := reflect.New(v.Type())
		if err := n.Decode(fresh.Interface()); err != nil {
			d.fail(at, "%s does not fit: %s is out of range", want, shown(n.Value))
			return
		}
		if v.CanFloat() && !finite(fresh.Elem().Float()) {
			d.fail(at, "want %s, got %s", want, shown(n.Value))
			return
		}
		v.Set(fresh.Elem())
	default:
		d.fail(at, "want %s, got %s", want, describe(n))
	}
}

func (d *decoder) str(at *yaml.Node, v reflect.Value) {
	n := target(at)
	if !isText(n) {
		d.fail(at, `want text, got %s; put it in quotes: "%s"`, describe(n), shown(n.Value))
		return
	}
	if d.printable(at) {
		v.SetString(n.Value)
	}
}

// printable refuses control characters that escapes such as "\0" put into text.
func (d *decoder) printable(at *yaml.Node) bool {
	n := target(at)
	i := strings.IndexFunc(n.Value, unprintable)
	if i < 0 {
		return true
	}
	r := []rune(n.Value[i:])[0]
	if r == 0 {
		d.fail(at, "the text contains a NUL character")
	} else {
		d.fail(at, "the text contains the control character %U", r)
	}
	return false
}

// free decodes a value without a declared type.
func (d *decoder) free(at *yaml.Node) (any, bool) {
	n := target(at)
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(at, "tags such as %s are not accepted; put text in quotes instead", shown(n.Tag))
		return nil, false
	case n.Kind == yaml.MappingNode:
		out := map[string]any{}
		d.mapping(at, reflect.ValueOf(&out).Elem())
		return out, true
	case n.Kind == yaml.SequenceNode:
		out := []any{}
		d.list(at, reflect.ValueOf(&out).Elem())
		return out, true
	case isNull(n):
		return nil, true
	case isText(n):
		return n.Value, d.printable(at)
	}
	return d.number(at)
}

// number also decodes booleans: every plain scalar that is not text.
func (d *decoder) number(at *yaml.Node) (any, bool) {
	n := target(at)
	var err error
	switch n.Tag {
	case "!!bool":
		var b bool
		if err = n.Decode(&b); err == nil {
			return b, true
		}
	case "!!int":
		var i int64
		if err = n.Decode(&i); err == nil {
			return i, true
		}
	case "!!float":
		var f float64
		if err = n.Decode(&f); err == nil && finite(f) {
			return f, true
		}
	}
	d.fail(at, "%s is not a value that fits here; put text in quotes", shown(n.Value))
	return nil, false
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// isText counts unquoted dates, which YAML would read as times, as text.
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp")
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	case isText(n):
		return fmt.Sprintf("the text %q", shown(n.Value))
	case n.Tag == "!!bool":
		return "the truth value " + shown(n.Value)
	}
	return "the number " + shown(n.Value)
}
