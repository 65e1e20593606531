package profile

import (
	"reflect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// merge returns child over parent by the rules of the package comment. It changes neither; the result
// shares what needed no merging.
func merge(parent, child *Profile) *Profile {
	out := mergeValue(reflect.ValueOf(*parent), reflect.ValueOf(*child)).Interface().(Profile)
	out.ID, out.Version, out.Extends = child.ID, child.Version, child.Extends
	out.Overrides = child.Overrides
	out.file, out.pos = child.file, child.pos
	if n := child.Network; n != nil && n.Default != nil && *n.Default == networkAllow {
		network := *out.Network
		network.Egress = n.Egress
		out.Network = &network
	}
	return &out
}

var unmarshalerType = reflect.TypeFor[strictyaml.Unmarshaler]()

func mergeValue(parent, child reflect.Value) reflect.Value {
	switch child.Kind() {
	case reflect.Struct:
		if reflect.PointerTo(child.Type()).Implements(unmarshalerType) {
			return child // a scalar with more than one form
		}
		return mergeStruct(parent, child)
	case reflect.Pointer:
		switch {
		case child.IsNil():
			return parent
		case parent.IsNil() || child.Elem().Kind() != reflect.Struct:
			return child
		}
		out := reflect.New(child.Type().Elem())
		out.Elem().Set(mergeValue(parent.Elem(), child.Elem()))
		return out
	case reflect.Map:
		return mergeMap(parent, child)
	case reflect.Slice:
		if child.IsNil() {
			return parent
		}
	case reflect.Interface:
		return mergeAny(parent, child)
	}
	return child
}

func mergeStruct(parent, child reflect.Value) reflect.Value {
	t := child.Type()
	chosen := map[string]bool{}
	for i := range t.NumField() {
		if group := t.Field(i).Tag.Get("choice"); group != "" && !child.Field(i).IsNil() {
			chosen[group] = true
		}
	}
	out := reflect.New(t).Elem()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		if chosen[f.Tag.Get("choice")] && child.Field(i).IsNil() {
			continue
		}
		switch f.Tag.Get("merge") {
		case "add":
			out.Field(i).Set(mergeList(parent.Field(i), child.Field(i)))
		case "env":
			out.Field(i).Set(mergeEnv(parent.Field(i), child.Field(i)))
		default:
			out.Field(i).Set(mergeValue(parent.Field(i), child.Field(i)))
		}
	}
	return out
}

// mergeList appends the child's entries to the parent's, each once. An empty list drops the parent's.
func mergeList(parent, child reflect.Value) reflect.Value {
	if parent.Len() == 0 || child.Len() == 0 {
		return mergeValue(parent, child)
	}
	out, seen := reflect.MakeSlice(child.Type(), 0, parent.Len()+child.Len()), map[any]bool{}
	for _, list := range []reflect.Value{parent, child} {
		for i := range list.Len() {
			if entry := list.Index(i).Interface(); !seen[entry] {
				seen[entry] = true
				out = reflect.Append(out, list.Index(i))
			}
		}
	}
	return out
}

// mergeEnv merges variables, whose values may refer to the parent's.
func mergeEnv(parent, child reflect.Value) reflect.Value {
	if parent.IsNil() || child.IsNil() {
		return mergeValue(parent, child)
	}
	return reflect.ValueOf(inheritEnv(parent.Interface().(map[string]string), child.Interface().(map[string]string)))
}

func mergeMap(parent, child reflect.Value) reflect.Value {
	if child.IsNil() {
		return parent
	}
	if parent.IsNil() {
		return child
	}
	out := reflect.MakeMapWithSize(child.Type(), parent.Len()+child.Len())
	for _, key := range parent.MapKeys() {
		out.SetMapIndex(key, parent.MapIndex(key))
	}
	for _, key := range child.MapKeys() {
		value := child.MapIndex(key)
		if old := parent.MapIndex(key); old.IsValid() {
			value = mergeValue(old, value)
		}
		out.SetMapIndex(key, value)
	}
	return out
}

func mergeAny(parent, child reflect.Value) reflect.Value {
	if child.IsNil() {
		return parent
	}
	if parent.IsNil() || child.Elem().Kind() != reflect.Map || parent.Elem().Type() != child.Elem().Type() {
		return child
	}
	return mergeMap(parent.Elem(), child.Elem())
}
