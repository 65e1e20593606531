package strictyaml

import (
	"fmt"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Positions finds where values stand in a file, for mistakes found after decoding. A nil Positions knows
// none.
type Positions struct {
	file string
	root *yaml.Node
}

// File returns the name given to DecodePositions.
func (p *Positions) File() string {
	if p == nil {
		return ""
	}
	return p.file
}

// Known reports whether the syntax was read, so that positions exist.
func (p *Positions) Known() bool { return p != nil && p.root != nil }

// Has reports whether the file has a value at path, even a wrong one.
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

// At returns line and column of the value at path: keys of mappings and decimal indexes of sequences. If
// path does not exist, it returns the position of the last key that does; 0, 0 if nothing is known.
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

// Errorf returns a mistake at the position of path.
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
