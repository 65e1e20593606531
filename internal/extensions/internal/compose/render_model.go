package compose

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxKey is the longest key, in bytes, that every YAML reader accepts.
const maxKey = 1000

// encode writes the model. Compose reads the JSON as YAML and then interpolates every string, so encode
// doubles '$' and escapes what YAML does not accept unescaped.
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
	if err := plain(tree); err != nil {
		return err
	}
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
	r.out.Model, r.out.Project = printable(b.Bytes()), &r.model
	return nil
}

// checkText refuses NULs, which no container can be given and which mark tokens here.
func (r *renderer) checkText() error {
	raw, err := json.Marshal([]any{r.p.Compose, r.p.Compose.Environment, r.o.Env, r.o.ProxyEnv, r.o.Labels, r.o.Mount, r.o.Bridges,
		r.o.SecretNames})
	if err != nil {
		return extensions.Errorf(extensions.KindInvalid, "the stack cannot be encoded: %w", err).At("compose")
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return extensions.Errorf(extensions.KindInternal, "the stack cannot be read back: %w", err)
	}
	return noNUL(tree)
}

func noNUL(node any) error {
	switch node := node.(type) {
	case string:
		if strings.ContainsRune(node, 0) {
			return badText(node)
		}
	case []any:
		for _, v := range node {
			if err := noNUL(v); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, k := range sortedKeys(node) {
			if err := cmp.Or(noNUL(k), noNUL(node[k])); err != nil {
				return err
			}
		}
	}
	return nil
}

// tokens escapes every string below node and inserts the placeholders.
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
		case part == VarWorkspace || part == VarBundle || part == VarSecrets || r.out.SecretVars[part] != "" || strings.HasPrefix(part, VarNet):
			b.WriteString("${" + part + "}")
		default:
			return "", badText(s)
		}
	}
	return b.String(), nil
}

func badText(s string) error {
	return extensions.Errorf(extensions.KindInvalid,
		"the stack has text that no container accepts: %s (bytes that are not UTF-8, a NUL, or a name that is empty, contains = or is longer "+
			"than %d bytes)",
		extensions.Clean(fmt.Sprintf("%q", s), 80), maxKey).At("compose")
}

// printable escapes what YAML accepts only escaped. Outside strings the encoder writes none of it.
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

// plain reduces what compose-go writes to what every Compose 2 reads: no nulls for commands that are not
// given, and no markers of later versions for what holds anyway. Names that start with "x-" are extensions in
// a mapping, so variables and labels become lists.
func plain(tree map[string]any) error {
	for _, s := range objects(tree["services"]) {
		for _, k := range []string{"command", "entrypoint"} {
			if s[k] == nil {
				delete(s, k)
			}
		}
		for _, d := range objects(s["depends_on"]) {
			if d["required"] == true {
				delete(d, "required")
			}
		}
		if hosts, ok := s["extra_hosts"].([]any); ok {
			for i, h := range hosts {
				hosts[i] = strings.Replace(fmt.Sprint(h), "=", ":", 1)
			}
		}
		lists := []map[string]any{s}
		for _, k := range []string{"post_start", "pre_stop"} {
			hooks, _ := s[k].([]any)
			for _, h := range hooks {
				if h, ok := h.(map[string]any); ok {
					lists = append(lists, h)
				}
			}
		}
		for _, l := range lists {
			if err := listed(l, "environment"); err != nil {
				return err
			}
		}
	}
	for _, k := range []string{"services", "networks", "volumes"} {
		for _, o := range objects(tree[k]) {
			if err := listed(o, "labels"); err != nil {
				return err
			}
		}
	}
	for _, k := range []string{"configs", "secrets", "networks", "volumes"} {
		if m, ok := tree[k].(map[string]any); ok && len(m) == 0 {
			delete(tree, k)
		}
	}
	return nil
}

// objects returns the members of a mapping that are mappings themselves.
func objects(node any) []map[string]any {
	m, _ := node.(map[string]any)
	var out []map[string]any
	for _, k := range sortedKeys(m) {
		if o, ok := m[k].(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// listed turns a mapping of texts into "name=text" lines.
func listed(o map[string]any, key string) error {
	m, ok := o[key].(map[string]any)
	if !ok {
		return nil
	}
	lines := []any{}
	for _, k := range sortedKeys(m) {
		if k == "" || strings.Contains(k, "=") {
			return badText(k)
		}
		lines = append(lines, k+"="+fmt.Sprint(m[k]))
	}
	o[key] = lines
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
