package strictyaml

import (
	"reflect"
)

// DecodePositions decodes the one document in data into the struct that into points to, and returns where
// values stand. It returns positions even on failure, once the syntax was read; into then holds what was
// correct. file names the source in messages. The error is an *extensions.Error of KindInvalid that wraps
// Errors.
//
// Fields match by their `yaml:"name"` tag, or without one by the lower-case field name. Fields may be
// strings, booleans, integers, float64, structs, pointers, slices, maps with string keys, any (nil,
// string, bool, int64, float64, []any, map[string]any), an Unmarshaler or an encoding.TextUnmarshaler.
// null leaves pointers, slices, maps and any nil and is a mistake elsewhere; an empty list is not nil.
func DecodePositions(file string, data []byte, into any) (*Positions, error) {
	root, bad := parse(file, data)
	if bad != nil {
		return &Positions{file: file}, Errors{bad}.Err()
	}
	pos := &Positions{file: file, root: root}
	d := &decoder{file: file}
	if !d.bounded(root) {
		return &Positions{file: file}, d.errs.Err()
	}
	d.value(root, reflect.ValueOf(into).Elem())
	return pos, d.errs.Err()
}

// TopLevelText returns the text of one top-level key, which tells what kind of file this is; "" if it is
// absent or not text. It returns errors as DecodePositions does, but only for syntax.
func TopLevelText(file string, data []byte, key string) (string, error) {
	root, bad := parse(file, data)
	if bad != nil {
		return "", Errors{bad}.Err()
	}
	if n := child(root, key); n != nil && isText(target(n)) {
		return target(n).Value, nil
	}
	return "", nil
}
