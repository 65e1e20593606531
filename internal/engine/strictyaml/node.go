package strictyaml

import (
	"reflect"

	"gopkg.in/yaml.v3"
)

// Unmarshaler decodes types that have more than one form, such as a word or a mapping. A returned error is
// reported at the node's position; Node's own methods report their mistakes themselves.
type Unmarshaler interface {
	UnmarshalStrict(n Node) error
}

// Kind is the form of a node.
type Kind int

// Forms of a node.
const (
	Null Kind = iota
	Text
	Bool
	Number
	List
	Mapping
)

// Node is one value of the document being decoded.
type Node struct {
	d  *decoder
	at *yaml.Node
}

// Kind returns the node's form, following aliases.
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

// Literal returns a scalar as written, without quotes; "" for other forms.
func (n Node) Literal() string {
	if t := target(n.at); t.Kind == yaml.ScalarNode {
		return t.Value
	}
	return ""
}

// String describes the node for a message: `the number 3`.
func (n Node) String() string { return describe(target(n.at)) }

// Decode decodes the node into the value that into points to and reports success. It records mistakes.
// into must not have the type whose UnmarshalStrict is running.
func (n Node) Decode(into any) bool {
	before := len(n.d.errs)
	n.d.value(n.at, reflect.ValueOf(into).Elem())
	return len(n.d.errs) == before
}
