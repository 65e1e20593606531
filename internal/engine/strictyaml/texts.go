package strictyaml

import (
	"strconv"

	"gopkg.in/yaml.v3"
)

// Texts calls visit with every key and every scalar of the document, following aliases. path is as for
// [Positions.At]; visit must not keep it.
func (p *Positions) Texts(visit func(path []string, text string, key bool)) {
	if p.Known() {
		texts(p.root, nil, visit)
	}
}

func texts(n *yaml.Node, path []string, visit func(path []string, text string, key bool)) {
	n = target(n)
	switch n.Kind {
	case yaml.ScalarNode:
		visit(path, n.Value, false)
	case yaml.SequenceNode:
		for i, c := range n.Content {
			texts(c, append(path, strconv.Itoa(i)), visit)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := target(n.Content[i]).Value
			at := append(path, key)
			visit(at, key, true)
			texts(n.Content[i+1], at, visit)
		}
	}
}
