package strictyaml

import (
	"reflect"

	"gopkg.in/yaml.v3"
)

// Unmarshaler decodes types that have more than one form, such as a word or a
// mapping. A returned error is told at the node's place; mistakes found by
// Node's own methods are told there and then.
type Unmarshaler interface {
	UnmarshalStrict(n Node) error
}

// Kind is the form of a node.
type Kind int

// The forms.
const (
	Null Kind = iota
	Text
	Bool
	Number
	List
	Mapping
)

// Node is one value of a document being decoded.
type Node struct {
	d  *decoder
	at *yaml.Node
}

// Kind returns the node's form, aliases followed.
func (n Node) Kind() Kind {
	t := target(n.at)
	switch {
	case t.Kind == yaml.MappingNode:
		return Mapping
	case t.Kind == yaml.SequenceNode:
		return List
	case isNull(t):
		return Null
	case isText(t):
		return Text
	case t.Tag == "!!bool":
		return Bool
	}
	return Number
}

// Literal is a scalar as it is written, without quotes; "" for the rest.
func (n Node) Literal() string {
	if t := target(n.at); t.Kind == yaml.ScalarNode {
		return t.Value
	}
	return ""
}

// String describes the node for a message: `the number 3`.
func (n Node) String() string { return describe(target(n.at)) }

// Decode decodes the node into what into points to and reports whether it was
// right. Mistakes are recorded. into must not be of the type whose
// UnmarshalStrict is running.
func (n Node) Decode(into any) bool {
	before := len(n.d.errs)
	n.d.value(n.at, reflect.ValueOf(into).Elem())
	return len(n.d.errs) == before
}
