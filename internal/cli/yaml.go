package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// encodeYAML writes v as JSON would name it, in the same order, as one YAML document.
func encodeYAML(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	node, err := yamlNode(in)
	if err != nil {
		return err
	}
	text, err := yaml.Dump(node, yaml.WithIndent(2))
	if err != nil {
		return err
	}
	_, err = w.Write(append([]byte("---\n"), text...))
	return err
}

// yamlNode reads the next JSON value.
func yamlNode(in *json.Decoder) (*yaml.Node, error) {
	t, err := in.Token()
	if err != nil {
		return nil, err
	}
	scalar := func(tag, value string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}, nil
	}
	switch t := t.(type) {
	case nil:
		return scalar("!!null", "null")
	case bool:
		return scalar("!!bool", fmt.Sprint(t))
	case json.Number:
		if _, err := t.Int64(); err == nil {
			return scalar("!!int", t.String())
		}
		return scalar("!!float", t.String())
	case string:
		return scalar("!!str", t)
	}
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if t == json.Delim('{') {
		node.Kind, node.Tag = yaml.MappingNode, "!!map"
	}
	for in.More() { // of a mapping, its names too
		child, err := yamlNode(in)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, child)
	}
	_, err = in.Token()
	return node, err
}
