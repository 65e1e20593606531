package conformance

import (
	"maps"
	"reflect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The checks of declarations hold for an extension that declares the same for every binding, too: it narrows
// nothing.
var declareChecks = []check{
	{name: "declare/narrows", run: func(e *env) {
		for _, values := range e.bindings() {
			d, err := extensions.Declared(e.ext, values)
			if err != nil && !extensions.IsKind(err, extensions.KindInvalid) {
				e.Errorf("with the config %v: %v", values, err)
			}
			if err := d.Validate(); err != nil {
				e.Errorf("with the config %v: %v", values, err)
			}
		}
	}},
	{name: "declare/accepts-a-config-that-opens", run: func(e *env) {
		e.open()
		if _, err := extensions.Declared(e.ext, e.cfg.Values); err != nil {
			e.Errorf("the config %v opens a place and declares nothing: %v", e.cfg.Values, err)
		}
	}},
	{name: "declare/is-pure", run: func(e *env) {
		other, ok := e.h.New(e.TB).(extensions.Declarer)
		if !ok {
			return
		}
		for _, values := range e.bindings() {
			before := maps.Clone(values)
			first, err := e.ext.(extensions.Declarer).Declare(values)
			if !reflect.DeepEqual(before, values) {
				e.Fatalf("the declaration changed the config to %v from %v", values, before)
			}
			for range 3 {
				again, err2 := other.Declare(maps.Clone(values))
				if !reflect.DeepEqual(first, again) || extensions.KindOf(err) != extensions.KindOf(err2) {
					e.Errorf("with the config %v: two declarations differ:\n%+v, %v\n%+v, %v", values, first, err, again, err2)
				}
			}
		}
	}},
}

// bindings are the harness's config, and others that differ from it in one choice each.
func (e *env) bindings() []map[string]any {
	all := []map[string]any{e.cfg.Values}
	vary := func(name string, v any) {
		values := maps.Clone(e.cfg.Values)
		if values == nil {
			values = map[string]any{}
		}
		values[name] = v
		all = append(all, values)
	}
	for _, f := range e.ext.Describe().Config {
		for _, v := range f.Enum {
			vary(f.Name, v)
		}
		if f.Type == extensions.FieldBool {
			vary(f.Name, true)
			vary(f.Name, false)
		}
	}
	return all
}
