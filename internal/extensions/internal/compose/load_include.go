package compose

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/compose-spec/compose-go/v2/override"
	"github.com/compose-spec/compose-go/v2/tree"
)

// include merges what the file includes below the file's own content.
func (l *loading) include(cfg map[string]any, doc *document, file, dir string, env map[string]string, stack []string) error {
	entries, _ := cfg["include"].([]any)
	if len(entries) == 0 && cfg["include"] != nil {
		if _, ok := cfg["include"].([]any); !ok {
			return l.stop("schema", file+": include", errors.New("it is not a list"))
		}
	}
	delete(cfg, "include")
	for i, e := range entries {
		where := fmt.Sprintf("%s: include[%d]", file, i)
		inc, ok := l.includeEntry(e, where, dir)
		if !ok {
			continue
		}
		if slices.Contains(stack, inc.files[0]) {
			return l.stop("schema", where, fmt.Errorf("%s includes itself", quoted(inc.files[0])))
		}
		from := map[string]string{}
		for _, name := range inc.envFiles {
			if err := l.envFile(name, where, "", from, env); err != nil {
				return err
			}
		}
		imported, err := l.unit(inc.files, inc.dir, l.under(maps.Clone(env), from), stack)
		if err != nil {
			return err
		}
		for _, kind := range []string{"services", "jobs", "volumes", "networks", "secrets", "configs", "models"} {
			if err := importKind(imported, cfg, kind, doc); err != nil {
				return err
			}
		}
	}
	return nil
}

func importKind(source, target map[string]any, kind string, doc *document) error {
	from, ok := source[kind].(map[string]any)
	if !ok {
		return nil
	}
	to, ok := target[kind].(map[string]any)
	if !ok {
		if target[kind] != nil {
			return fmt.Errorf("%s is not a mapping", kind)
		}
		to = map[string]any{}
		target[kind] = to
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		own, ok := to[name]
		if !ok {
			to[name] = from[name]
			continue
		}
		if reflect.DeepEqual(own, from[name]) {
			continue // reached by two paths
		}
		doc.reset(map[string]any{kind: map[string]any{name: from[name]}})
		merged, err := override.MergeYaml(from[name], own, tree.NewPath(kind, name))
		if err != nil {
			return err
		}
		to[name] = merged
	}
	return nil
}

type included struct {
	files, envFiles []string
	dir             string
}

// includeEntry reads one entry of include; ok is false if it was refused.
func (l *loading) includeEntry(e any, where, dir string) (inc included, ok bool) {
	m, isMap := e.(map[string]any)
	if p, isText := e.(string); isText {
		m, isMap = map[string]any{"path": p}, true
	}
	paths := texts(m["path"])
	if !isMap || len(paths) == 0 {
		l.found.refuse("schema", where, "it has no path")
		return inc, false
	}
	ok = true
	for _, p := range paths {
		if remote(p) {
			l.found.refuse("include-remote", where, quoted(p))
			ok = false
			continue
		}
		name, found := l.file(dir, p, "include-outside", where)
		inc.files, ok = append(inc.files, name), ok && found
	}
	if !ok {
		return inc, false
	}
	inc.dir = path.Dir(path.Join(dir, paths[0]))
	if pd, _ := m["project_directory"].(string); pd != "" {
		at, _, err := l.within(dir, pd)
		if err != nil {
			l.found.refuse("include-outside", where+".project_directory", fmt.Sprintf("%s: %v", quoted(pd), err))
			return inc, false
		}
		inc.dir = at
	}
	for _, p := range texts(m["env_file"]) {
		if p == "/dev/null" { // Compose's own word for none
			continue
		}
		name, found := l.file(dir, p, "env-file-outside", where+".env_file")
		inc.envFiles, ok = append(inc.envFiles, name), ok && found
	}
	if dotenv := path.Join(inc.dir, ".env"); m["env_file"] == nil && l.bundle.Lookup(dotenv) != nil {
		name, found := l.file(inc.dir, ".env", "env-file-outside", where+".env_file")
		inc.envFiles, ok = append(inc.envFiles, name), ok && found
	}
	return inc, ok
}

// texts reads one text or a list of texts.
func texts(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}
