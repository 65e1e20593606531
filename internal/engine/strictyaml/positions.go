package strictyaml

import (
	"fmt"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Positions finds where in a file a value stands, for mistakes that are found
// after decoding. A nil Positions knows no place.
type Positions struct {
	file string
	root *yaml.Node
}

// File is the name Decode was given.
func (p *Positions) File() string {
	if p == nil {
		return ""
	}
	return p.file
}

// Known reports that the syntax could be read, so that there are positions.
func (p *Positions) Known() bool { return p != nil && p.root != nil }

// Has reports that the file says something at path, be it wrong.
func (p *Positions) Has(path ...string) bool {
	if !p.Known() {
		return false
	}
	n := p.root
	for _, step := range path {
		if n = child(n, step); n == nil {
			return false
		}
	}
	return true
}

// At returns line and column of the value that path leads to: keys of
// mappings and decimal indexes of sequences. Where the path ends early, it is
// the place of the last key that exists. 0, 0 if nothing is known.
func (p *Positions) At(path ...string) (line, column int) {
	if !p.Known() {
		return 0, 0
	}
	n := p.root
	for _, step := range path {
		next := child(n, step)
		if next == nil {
			break
		}
		n = next
	}
	return n.Line, n.Column
}

// Errorf is a mistake at the place of path.
func (p *Positions) Errorf(path []string, format string, args ...any) *Error {
	line, column := p.At(path...)
	return &Error{File: p.File(), Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
}

func child(n *yaml.Node, step string) *yaml.Node {
	n = target(n)
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if target(n.Content[i]).Value == step {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}
