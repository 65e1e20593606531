package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxKey is the longest key, in bytes, that every YAML reader takes.
const maxKey = 1000

// encode writes the model. The JSON is read as YAML by Compose, which then
// interpolates every string: '$' is doubled, and what YAML does not accept
// unescaped is escaped.
func (r *renderer) encode() error {
	raw, err := r.model.MarshalJSON()
	if err != nil {
		return extensions.Errorf(extensions.KindInternal, "the rendered stack cannot be encoded: %w", err)
	}
	var tree map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return extensions.Errorf(extensions.KindInternal, "the rendered stack cannot be read back: %w", err)
	}
	plain(tree)
	if err := r.tokens(tree); err != nil {
		return err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(tree); err != nil {
		return extensions.Errorf(extensions.KindInternal, "the rendered stack cannot be encoded: %w", err)
	}
	r.out.Model = printable(b.Bytes())
	return nil
}

// tokens escapes every string below node and puts the placeholders in.
func (r *renderer) tokens(node any) error {
	switch node := node.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(node)) {
			if len(k) > maxKey || strings.ContainsRune(k, 0) || strings.ContainsRune(k, utf8.RuneError) {
				return badText(k)
			}
			if s, ok := node[k].(string); ok {
				escaped, err := r.escape(s)
				if err != nil {
					return err
				}
				node[k] = escaped
			} else if err := r.tokens(node[k]); err != nil {
				return err
			}
		}
	case []any:
		for i := range node {
			if s, ok := node[i].(string); ok {
				escaped, err := r.escape(s)
				if err != nil {
					return err
				}
				node[i] = escaped
			} else if err := r.tokens(node[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// escape doubles '$' and turns tokens into placeholders.
func (r *renderer) escape(s string) (string, error) {
	parts := strings.Split(s, "\x00")
	if len(parts)%2 == 0 || strings.ContainsRune(s, utf8.RuneError) {
		return "", badText(s)
	}
	var b strings.Builder
	for i, part := range parts {
		switch {
		case i%2 == 0:
			b.WriteString(strings.ReplaceAll(part, "$", "$$"))
		case part == VarWorkspace || part == VarBundle || r.out.SecretVars[part] != "" || strings.HasPrefix(part, VarNet):
			b.WriteString("${" + part + "}")
		default:
			return "", badText(s)
		}
	}
	return b.String(), nil
}

func badText(s string) error {
	return extensions.Errorf(extensions.KindInvalid, "the stack holds text that no container can be given: %s (bytes that are not UTF-8, a NUL, or a name beyond %d bytes)",
		extensions.Clean(fmt.Sprintf("%q", s), 80), maxKey).At("compose")
}

// printable escapes what YAML accepts in no form but escaped. Outside of
// strings the encoder writes none of it.
func printable(doc []byte) []byte {
	var b bytes.Buffer
	for _, c := range string(doc) {
		switch {
		case c >= 0x7f && c < 0xa0, c == 0x2028, c == 0x2029, c == 0xfeff, c == 0xfffe, c == 0xffff:
			fmt.Fprintf(&b, "\\u%04x", c)
		default:
			b.WriteRune(c)
		}
	}
	return b.Bytes()
}

// plain reduces what compose-go writes to what every Compose 2 reads: no nulls
// for commands that are not given, no marks of later versions that say what
// is so anyway.
func plain(tree map[string]any) {
	services, _ := tree["services"].(map[string]any)
	for _, s := range services {
		s, ok := s.(map[string]any)
		if !ok {
			continue
		}
		for _, k := range []string{"command", "entrypoint"} {
			if s[k] == nil {
				delete(s, k)
			}
		}
		on, _ := s["depends_on"].(map[string]any)
		for _, d := range on {
			if d, ok := d.(map[string]any); ok && d["required"] == true {
				delete(d, "required")
			}
		}
		if hosts, ok := s["extra_hosts"].([]any); ok {
			s["extra_hosts"] = hostMap(hosts)
		}
	}
	for _, k := range []string{"configs", "secrets", "networks", "volumes"} {
		if m, ok := tree[k].(map[string]any); ok && len(m) == 0 {
			delete(tree, k)
		}
	}
}

// hostMap turns "name=address" lines into a mapping, where no name has two.
func hostMap(lines []any) any {
	out := map[string]any{}
	for _, l := range lines {
		name, address, ok := strings.Cut(fmt.Sprint(l), "=")
		if _, twice := out[name]; !ok || twice {
			return lines
		}
		out[name] = address
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
