package compose

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/interpolation"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/override"
	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/transform"
	"github.com/compose-spec/compose-go/v2/validation"
)

// unit loads files that override one another, with what they include and extend. It does what the library's
// loader does except for reading files.
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

// add merges one file over earlier files.
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
		return nil, l.stop("schema", file, unknownField(err))
	}
	delete(dict, "version")
	if dict, err = transform.Canonical(dict, false); err != nil {
		return nil, l.stop("schema", file, err)
	}
	// Canonical forms reveal duplicates, such as ranges of ports.
	return override.EnforceUnicity(loader.OmitEmpty(dict))
}

// unknownField rewords the schema's "false schema" for an unknown field.
func unknownField(err error) error {
	at, ok := strings.CutSuffix(err.Error(), " false schema")
	if !ok {
		return err
	}
	parent, field := "", at
	if i := strings.LastIndexByte(at, '.'); i >= 0 {
		parent, field = at[:i]+": ", at[i+1:]
	}
	return fmt.Errorf("%sCompose knows no field %s here", parent, quoted(field))
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
	if err == nil {
		err = l.spend(file, doc.nodes)
	}
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

// spend counts the stack's nodes, copies by extends included.
func (l *loading) spend(where string, nodes int) error {
	if l.nodes += nodes; l.nodes > maxTotal {
		return l.stop("too-large", where, fmt.Errorf("the stack expands to more than %d nodes", maxTotal))
	}
	return nil
}

// plainPaths refuses variables that would decide which files are read.
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

// expander returns an expander that sees env, then more unless it is nil.
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
			l.found.unset(name, where, "the variable "+name+" has no value and no default")
		},
	}
}
