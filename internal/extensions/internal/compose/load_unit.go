package compose

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/interpolation"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/override"
	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/transform"
	"github.com/compose-spec/compose-go/v2/tree"
	"github.com/compose-spec/compose-go/v2/validation"
)

// unit loads files that override one another, with what they include and
// extend, as the library's loader does, but for reading files.
func (l *loading) unit(files []string, dir string, env map[string]string, stack []string) (map[string]any, error) {
	dict := map[string]any{}
	for _, f := range files {
		var err error
		if dict, err = l.add(dict, f, dir, env, stack); err != nil {
			return nil, err
		}
	}
	dict, err := transform.SetDefaultValues(dict)
	if err != nil {
		return nil, err
	}
	if err := validation.Validate(dict); err != nil {
		return nil, l.stop("schema", files[0], err)
	}
	anchorAll(dict, dir)
	loader.ResolveEnvironment(dict, env)
	return dict, nil
}

// add merges one file over what earlier files said.
func (l *loading) add(dict map[string]any, file, dir string, env map[string]string, stack []string) (map[string]any, error) {
	doc, cfg, err := l.read(file, env)
	if err != nil {
		return nil, err
	}
	if err := l.include(cfg, doc, file, dir, env, append(slices.Clip(stack), file)); err != nil {
		return nil, err
	}
	doc.reset(dict)
	x := &extending{l: l, env: env, bases: map[string]*base{}}
	for _, kind := range []string{"services", "jobs"} {
		entries, ok := cfg[kind].(map[string]any)
		if !ok {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if entries[name], err = x.extend(name, entries, doc, file, dir, nil); err != nil {
				return nil, err
			}
		}
	}
	if dict, err = override.Merge(dict, cfg); err != nil {
		return nil, err
	}
	if dict, err = override.EnforceUnicity(dict); err != nil {
		return nil, err
	}
	if err := schema.Validate(dict); err != nil {
		return nil, l.stop("schema", file, err)
	}
	delete(dict, "version")
	if dict, err = transform.Canonical(dict, false); err != nil {
		return nil, l.stop("schema", file, err)
	}
	// Canonical forms reveal duplicates, such as ranges of ports.
	return override.EnforceUnicity(loader.OmitEmpty(dict))
}

// read parses and interpolates one file.
func (l *loading) read(file string, env map[string]string) (*document, map[string]any, error) {
	if l.files++; l.files > maxFiles {
		return nil, nil, l.stop("too-large", file, fmt.Errorf("the stack reads more than %d files", maxFiles))
	}
	data, err := l.bundle.readFile(l.ctx, file)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	doc, err := parseYAML(data)
	switch {
	case errors.Is(err, errYAML):
		return nil, nil, l.stop("yaml", file, err)
	case errors.Is(err, errTooLarge):
		return nil, nil, l.stop("too-large", file, err)
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	l.plainPaths(doc.root, file)
	x := l.expander(file, env, nil)
	cfg, err := interpolation.Interpolate(doc.root, interpolation.Options{
		LookupValue: x.lookup, TypeCastMapping: l.casts,
		Substitute: func(text string, _ template.Mapping) (string, error) { return x.substitute(text, 0) },
	})
	if errors.Is(err, errExpands) {
		return nil, nil, l.stop("too-large", file, errExpands)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return doc, cfg, l.boundPorts(cfg, file)
}

// plainPaths refuses variables where they would decide which files are read.
func (l *loading) plainPaths(root map[string]any, file string) {
	var walk func(v any, where string)
	walk = func(v any, where string) {
		switch v := v.(type) {
		case string:
			if strings.Contains(v, "$") {
				l.found.refuse("path-interpolated", file+": "+where, quoted(v))
			}
		case []any:
			for i, e := range v {
				walk(e, fmt.Sprintf("%s[%d]", where, i))
			}
		case map[string]any:
			for k, e := range v {
				walk(e, where+"."+k)
			}
		}
	}
	walk(root["include"], "include")
	for _, kind := range []string{"services", "jobs"} {
		entries, _ := root[kind].(map[string]any)
		for name, e := range entries {
			s, _ := e.(map[string]any)
			if ext, ok := s["extends"].(map[string]any); ok {
				walk(ext["file"], kind+"."+name+".extends.file")
			}
		}
	}
}

// expander interpolates from env. more, where not nil, is asked last.
func (l *loading) expander(where string, env, more map[string]string) *expander {
	return &expander{left: &l.left,
		lookup: func(name string) (string, bool) {
			if l.secrets[name] {
				l.found.refuse("interpolate-secret", where, "the secret "+name+" is interpolated")
				return "", true
			}
			if v, ok := env[name]; ok {
				return v, true
			}
			v, ok := more[name]
			return v, ok
		},
		unset: func(name string) {
			l.found.refuseUnless("interpolate-environment", name, where, "the variable "+name+" is set nowhere and has no default")
		},
	}
}

// include merges what the file includes below what it says itself.
func (l *loading) include(cfg map[string]any, doc *document, file, dir string, env map[string]string, stack []string) error {
	entries, _ := cfg["include"].([]any)
	if len(entries) == 0 && cfg["include"] != nil {
		if _, ok := cfg["include"].([]any); !ok {
			return l.stop("schema", file+": include", errors.New("it is no list"))
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
			return fmt.Errorf("%s is no mapping", kind)
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
			continue // reached by two ways
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

// includeEntry reads one entry of include; ok is false where it was refused.
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
