package strictyaml

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// bounded walks everything that decoding would, aliases included, and refuses cycles, explosion and too
// deep nesting. It stops at the first fault, so its own work is bounded too.
func (d *decoder) bounded(root *yaml.Node) bool {
	w := walk{active: map[*yaml.Node]bool{}}
	bad := w.visit(root, 0)
	if bad != nil {
		d.errs = append(d.errs, &Error{File: d.file, Line: bad.at.Line, Column: bad.at.Column, Msg: bad.msg})
	}
	return bad == nil
}

type walk struct {
	nodes  int
	active map[*yaml.Node]bool // anchored values being walked
}

type fault struct {
	at  *yaml.Node
	msg string
}

func (w *walk) visit(n *yaml.Node, depth int) *fault {
	w.nodes++
	if w.nodes > MaxNodes {
		return &fault{n, fmt.Sprintf("more than %d values, aliases followed", MaxNodes)}
	}
	if depth > MaxDepth {
		return &fault{n, fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	if n.Kind == yaml.AliasNode {
		if w.active[n.Alias] {
			return &fault{n, fmt.Sprintf("alias *%s is inside its own anchor", shown(n.Value))}
		}
		return w.inside(n, w.visit(n.Alias, depth))
	}
	if n.Anchor != "" {
		w.active[n] = true
		defer delete(w.active, n)
	}
	for _, c := range n.Content {
		if f := w.visit(c, depth+1); f != nil {
			return f
		}
	}
	return nil
}

// inside moves a fault of explosion from the anchor to the alias, since the alias must go.
func (w *walk) inside(alias *yaml.Node, f *fault) *fault {
	if f == nil || strings.HasPrefix(f.msg, "alias ") {
		return f
	}
	return &fault{alias, f.msg}
}

// shown shortens text that a message quotes.
func shown(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
