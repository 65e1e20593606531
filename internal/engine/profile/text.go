package profile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Text returns the profile as a file of a catalog, which Parse reads back to an equal profile.
func (p *Profile) Text() ([]byte, error) {
	var node yaml.Node
	if err := node.Encode(p); err != nil {
		return nil, err
	}
	dropUnset(&node)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// dropUnset removes what is not set, which means the same as its absence.
func dropUnset(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		var kept []*yaml.Node
		for pair := range slices.Chunk(n.Content, 2) {
			if v := pair[1]; v.Tag != "!!null" && (v.Kind == yaml.ScalarNode || len(v.Content) > 0) {
				kept = append(kept, pair...)
			}
		}
		n.Content = kept
	}
	for _, child := range n.Content {
		dropUnset(child)
	}
}

// MarshalYAML writes what UnmarshalStrict reads.
func (c CPU) MarshalYAML() (any, error) {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%03d", c/1000, c%1000), "0"), "."), nil
}

// MarshalYAML writes what UnmarshalStrict reads.
func (e Entrypoint) MarshalYAML() (any, error) {
	if e.Mode == extensions.EntrypointArgv {
		return e.Argv, nil
	}
	return string(e.Mode), nil
}

// MarshalYAML writes what UnmarshalStrict reads.
func (g GPU) MarshalYAML() (any, error) {
	if g.Model == "" {
		return g.Count, nil
	}
	return map[string]any{"model": g.Model, "count": g.Count}, nil
}

// MarshalYAML writes what UnmarshalStrict reads.
func (r SecretRef) MarshalYAML() (any, error) { return r.Name + "=" + r.Ref, nil }

// MarshalYAML writes what UnmarshalStrict reads.
func (s Step) MarshalYAML() (any, error) {
	if s.Timeout == 0 {
		return s.Run, nil
	}
	return map[string]any{"run": s.Run, "timeout": s.Timeout}, nil
}
