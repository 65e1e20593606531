package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v4"
)

const (
	maxNodes = 50_000  // of one document, aliases counted each time
	maxDepth = 64      // of one document
	maxText  = 8 << 20 // bytes of one document's scalars, aliases counted
	maxList  = 4_000   // entries of one list; the library compares every pair
	maxTotal = 500_000 // nodes of one stack, each copy counted
	maxFiles = 200     // reads for one stack, repeats counted
	maxLoops = 4_000   // services extended for one stack
	maxPaths = 50_000  // paths through the dependencies of one stack
)

// errYAML marks text that YAML readers may read differently.
var errYAML = errors.New("ambiguous YAML")

// document is one compose file before interpolation.
type document struct {
	root map[string]any
	// resets are the places tagged !reset or !override: what earlier files say there is dropped.
	resets [][]string
	nodes  int
}

// parseYAML reads one document with plain, unique keys. It refuses tags other than YAML's own, !reset and
// !override, and aliases that expand beyond the limits.
func parseYAML(data []byte) (*document, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var root, second yaml.Node
	if err := dec.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty")
		}
		return nil, err
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: it has more than one document", errYAML)
	}
	w := &yamlWalk{}
	if err := w.visit(&root, nil, 0); err != nil {
		return nil, err
	}
	drop(&root, map[*yaml.Node]bool{})
	var value any
	if err := root.Decode(&value); err != nil {
		return nil, err
	}
	plain, err := plainKeys(value)
	if err != nil {
		return nil, err
	}
	top, ok := plain.(map[string]any)
	if !ok {
		return nil, errors.New("its top level is not a mapping")
	}
	return &document{root: top, resets: w.resets, nodes: w.nodes}, nil
}

// plainTags are the tags of values that every reader reads alike.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!merge", "!!timestamp"}

type yamlWalk struct {
	resets      [][]string
	nodes, text int
}

// visit walks the document as a decoder would, through aliases.
func (w *yamlWalk) visit(n *yaml.Node, at []string, depth int) error {
	w.nodes++
	w.text += len(n.Value)
	if depth > maxDepth || w.nodes > maxNodes || w.text > maxText || n.Kind == yaml.SequenceNode && len(n.Content) > maxList {
		return fmt.Errorf("%w: more than %d levels, %d nodes, %d bytes or %d entries in a list", errTooLarge, maxDepth, maxNodes, maxText,
			maxList)
	}
	switch tag := n.Tag; {
	case tag == "!reset" || tag == "!override":
		w.resets = append(w.resets, slices.Clone(at))
		if tag == "!reset" {
			return nil
		}
	case tag != "" && !slices.Contains(plainTags, tag):
		return fmt.Errorf("%w: line %d has the tag %s", errYAML, n.Line, short(tag))
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.visit(n.Alias, at, depth+1)
	case yaml.DocumentNode:
		for _, c := range n.Content {
			if err := w.visit(c, at, depth+1); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			if err := w.visit(c, append(at, "[]"), depth+1); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		return w.mapping(n, at, depth)
	}
	return nil
}

func (w *yamlWalk) mapping(n *yaml.Node, at []string, depth int) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("%w: line %d has a key that is not plain text", errYAML, key.Line)
		}
		if seen[key.Value] {
			return fmt.Errorf("%w: line %d has the key %q a second time", errYAML, key.Line, short(key.Value))
		}
		seen[key.Value] = true
		next := at
		if key.Value != "<<" {
			next = append(slices.Clip(at), key.Value)
		}
		if err := w.visit(value, next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// drop removes what is tagged !reset from the document, and the tag !override from what stays.
func drop(n *yaml.Node, done map[*yaml.Node]bool) {
	if n == nil || done[n] {
		return
	}
	done[n] = true
	if n.Tag == "!override" {
		n.Tag = ""
	}
	gone := func(c *yaml.Node) bool {
		return c.Tag == "!reset" || c.Kind == yaml.AliasNode && c.Alias.Tag == "!reset"
	}
	var kept []*yaml.Node
	for i := 0; i < len(n.Content); i++ {
		c := n.Content[i]
		switch {
		case n.Kind == yaml.MappingNode && i+1 < len(n.Content):
			i++
			if !gone(n.Content[i]) {
				kept = append(kept, c, n.Content[i])
			}
		case n.Kind != yaml.MappingNode && !gone(c):
			kept = append(kept, c)
		}
	}
	n.Content = kept
	for _, c := range kept {
		drop(c, done)
	}
	drop(n.Alias, done)
}

// plainKeys turns decoded values into maps with text keys.
func plainKeys(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			p, err := plainKeys(e)
			if err != nil {
				return nil, err
			}
			v[k] = p
		}
		return v, nil
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			text, ok := k.(string)
			if !ok {
				return nil, fmt.Errorf("%w: the key %v is not text", errYAML, k)
			}
			p, err := plainKeys(e)
			if err != nil {
				return nil, err
			}
			out[text] = p
		}
		return out, nil
	case []any:
		out := make([]any, len(v)) // never nil: the schema takes nil for null
		for i, e := range v {
			p, err := plainKeys(e)
			if err != nil {
				return nil, err
			}
			out[i] = p
		}
		return out, nil
	}
	return v, nil
}

// reset drops from dict what the document's tags name.
func (d *document) reset(dict map[string]any) {
	for _, at := range d.resets {
		m, last := dict, len(at)-1
		for i, key := range at {
			if i == last {
				delete(m, key)
				break
			}
			next, ok := m[key].(map[string]any)
			if !ok {
				break
			}
			m = next
		}
	}
}
