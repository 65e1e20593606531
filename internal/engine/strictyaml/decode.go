package strictyaml

import (
	"reflect"
)

// DecodePositions reads the one document of data into the struct that into
// points to, and tells where values stand, also when it fails after the syntax
// was read; then into holds what was right.
// file names the source in messages. The error is an *extensions.Error of
// KindInvalid that holds Errors.
//
// Fields are found by their `yaml:"name"` tag; without one, by the lower-case
// field name. Fields may be strings, booleans, integers, float64, structs,
// pointers, slices, maps with string keys, any (nil, string, bool, int64,
// float64, []any, map[string]any), an Unmarshaler or an
// encoding.TextUnmarshaler. null leaves pointers, slices, maps and any nil
// and is a mistake elsewhere; an empty list is not nil.
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

// TopLevelText reads one key of the document's top level, to tell what kind
// of file this is; "" if it is absent or not text. Errors as DecodePositions', of
// syntax only.
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
