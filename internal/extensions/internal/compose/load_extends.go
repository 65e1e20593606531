package compose

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/compose-spec/compose-go/v2/override"
	"github.com/compose-spec/compose-go/v2/transform"
)

// extending resolves the extends of one file's services.
type extending struct {
	l     *loading
	env   map[string]string
	bases map[string]*base
}

// base is another file's services, with paths resolved against its folder.
type base struct {
	services map[string]any
	doc      *document
}

// extend returns the service merged over everything it extends.
func (x *extending) extend(name string, services map[string]any, doc *document, file, dir string, chain []string) (any, error) {
	service, ok := services[name].(map[string]any)
	if !ok {
		return services[name], nil
	}
	ext, ok := service["extends"]
	if !ok {
		return service, nil
	}
	where := file + ": services." + name + ".extends"
	me := file + "\x00" + name
	if x.l.loops++; slices.Contains(chain, me) || x.l.loops > maxLoops {
		return nil, x.l.stop("schema", where, errors.New("it forms a cycle"))
	}
	chain = append(slices.Clip(chain), me)
	var ref, refFile string
	switch e := ext.(type) {
	case string:
		ref = e
	case map[string]any:
		ref, _ = e["service"].(string)
		refFile, _ = e["file"].(string)
		if e["file"] != nil && refFile == "" {
			return nil, x.l.stop("schema", where, errors.New("its file is not text"))
		}
	}
	from, fromDoc, fromFile, fromDir := services, doc, file, dir
	if refFile != "" {
		b, at, err := x.base(refFile, dir, where)
		if err != nil || b == nil {
			delete(service, "extends")
			return service, err
		}
		from, fromDoc, fromFile, fromDir = maps.Clone(b.services), b.doc, at, path.Dir(path.Join(dir, refFile))
	}
	if _, ok := from[ref]; !ok {
		return nil, x.l.stop("schema", where, fmt.Errorf("there is no service %s", quoted(ref)))
	}
	below, err := x.extend(ref, from, fromDoc, fromFile, fromDir, chain)
	if err != nil {
		return nil, err
	}
	source, ok := clone(below).(map[string]any)
	if !ok {
		return service, nil
	}
	if err := x.l.spend(where, count(source)); err != nil {
		return nil, err
	}
	doc.reset(map[string]any{"services": map[string]any{name: source}})
	merged, err := override.ExtendService(source, service)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	delete(merged, "extends")
	services[name] = merged
	return merged, nil
}

// base reads the services of another file; nil if the file was refused.
func (x *extending) base(p, dir, where string) (*base, string, error) {
	if remote(p) {
		x.l.found.refuse("extends-remote", where, quoted(p))
		return nil, "", nil
	}
	at, ok := x.l.file(dir, p, "extends-outside", where)
	if !ok {
		return nil, "", nil
	}
	if b := x.bases[at]; b != nil {
		return b, at, nil
	}
	doc, cfg, err := x.l.read(at, x.env)
	if err != nil {
		return nil, "", err
	}
	services, ok := cfg["services"].(map[string]any)
	if !ok {
		return nil, "", x.l.stop("schema", where, fmt.Errorf("%s has no services", quoted(p)))
	}
	cfg, err = transform.Canonical(map[string]any{"services": services}, false)
	if err != nil {
		return nil, "", x.l.stop("schema", at, err)
	}
	// The paths are the other file's; extending leaves them alone.
	anchorAll(cfg, path.Dir(path.Join(dir, p)))
	b := &base{services: cfg["services"].(map[string]any), doc: doc}
	x.bases[at] = b
	return b, at, nil
}

// clone copies maps and lists deeply.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = clone(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	}
	return v
}

// count is the number of values in v.
func count(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += count(e)
		}
	case []any:
		for _, e := range v {
			n += count(e)
		}
	}
	return n
}
