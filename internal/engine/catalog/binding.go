package catalog

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// bindingFile is one file of extensions/.
type bindingFile struct {
	ID              string                  `yaml:"id"`
	Title           string                  `yaml:"title"`
	Handler         string                  `yaml:"handler"`
	Capabilities    *narrowing              `yaml:"capabilities"`
	RuntimeProvides *providesFile           `yaml:"runtime_provides"`
	Config          map[string]any          `yaml:"config"`
	Registries      map[string]registryFile `yaml:"registries"`
	Region          string                  `yaml:"region"`
	Enabled         *bool                   `yaml:"enabled"`
	Priority        int64                   `yaml:"priority"`
	Billing         *string                 `yaml:"billing"`
	Cost            *costFile               `yaml:"cost"`
	Capacity        *capacityFile           `yaml:"capacity"`
	ShadowPrice     *shadowFile             `yaml:"shadow_price"`
	Latency         *latencyFile            `yaml:"latency"`
	Fee             *feeFile                `yaml:"fee"`
}

// providesFile extends or replaces what the extension declares.
type providesFile struct {
	Replace          bool     `yaml:"replace"`
	RuntimeKinds     []string `yaml:"runtime_kinds"`
	RequirementKinds []string `yaml:"requirement_kinds"`
}

type costFile struct {
	PerHour *string `yaml:"per_hour"`
	Source  string  `yaml:"source"`
	AsOf    string  `yaml:"as_of"`
}

type capacityFile struct {
	MaxSandboxes *int64 `yaml:"max_sandboxes"`
}

const maxTitle = 200

// bindingReader checks one file of extensions/.
type bindingReader struct {
	in   bindingFile
	pos  *strictyaml.Positions
	errs strictyaml.Errors
	// now is the clock that dates are checked against. builtin skips that check: the program's own dates
	// are right, whatever the clock says.
	now     time.Time
	builtin bool
}

func (ld *loader) addBinding(f file, builtin bool) {
	d, err := parse(f, decode[bindingFile])
	pos := d.pos
	r := &bindingReader{in: d.in, pos: pos, errs: strictyaml.Collect(f.name, err), now: ld.now, builtin: builtin}
	x, known := ld.handlers[r.in.Handler]
	if builtin && !known {
		return
	}
	var b Binding
	if pos.Known() {
		b = r.binding(x, ld.handlerNames())
	}
	ld.errs = append(ld.errs, r.errs...)
	if len(r.errs) > 0 {
		ld.broken[r.in.ID] = true
		return
	}
	b.File = f.name
	if was, ok := ld.bindings[b.ID]; ok && !overrides(ld, was, pos.Errorf([]string{"id"}, ""), b.ID) {
		return
	}
	ld.bindings[b.ID] = entry[Binding]{value: b, file: f.name, layer: ld.layer}
}

func (r *bindingReader) fail(path []string, err error) {
	if err != nil {
		r.errs = append(r.errs, r.pos.Errorf(path, "%s", strictyaml.Message(err)))
	}
}

func (r *bindingReader) refuse(path []string, format string, args ...any) *strictyaml.Error {
	e := r.pos.Errorf(path, format, args...)
	r.errs = append(r.errs, e)
	return e
}

// binding reads the file; x is its handler, nil if this build has none.
func (r *bindingReader) binding(x extensions.Extension, handlers []string) Binding {
	in := r.in
	if in.ID == "" && !r.pos.Has("id") {
		r.refuse(nil, "id is required, as in id: ext.mine")
	} else {
		r.fail([]string{"id"}, profile.CheckID(profile.ExtensionPrefix, in.ID))
	}
	if len(in.Title) > maxTitle || strings.ContainsAny(in.Title, "\n\t") {
		r.refuse([]string{"title"}, "the title is longer than %d bytes or has several lines", maxTitle)
	}
	if in.Priority < -1_000_000 || in.Priority > 1_000_000 {
		r.refuse([]string{"priority"}, "%d is not between -1000000 and 1000000", in.Priority)
	}
	if x == nil {
		r.unknownHandler(handlers)
		return Binding{}
	}
	d := r.declared(x)
	b := Binding{ID: in.ID, Title: in.Title, Handler: in.Handler, Descriptor: d, Config: in.Config, Region: in.Region, Priority: in.Priority}
	if b.Title == "" {
		b.Title = d.Title
	}
	b.Capabilities = r.narrow(d.Capabilities)
	b.Provides = r.provides(b.Capabilities.Provides)
	b.Registries = r.registries(d)
	r.region(b.Capabilities)
	r.cost(&b)
	r.enabled(&b)
	r.billing(&b)
	r.shadow(&b)
	r.latency(&b)
	r.fee(&b)
	if k := in.Capacity; k != nil && k.MaxSandboxes != nil {
		if *k.MaxSandboxes < 0 {
			r.refuse([]string{"capacity", "max_sandboxes"}, "%d is negative", *k.MaxSandboxes)
		}
		b.MaxSandboxes = k.MaxSandboxes
	}
	return b
}

func (r *bindingReader) unknownHandler(handlers []string) {
	if r.in.Handler == "" && !r.pos.Has("handler") {
		r.refuse(nil, "handler is required: one of %s", strings.Join(handlers, ", "))
		return
	}
	e := r.refuse([]string{"handler"}, "no handler is called %q: want one of %s", extensions.Clean(r.in.Handler, 80),
		strings.Join(handlers, ", "))
	e.Suggestion = strictyaml.Nearest(r.in.Handler, handlers)
}

func (r *bindingReader) provides(declared extensions.Provides) extensions.Provides {
	p := r.in.RuntimeProvides
	if p == nil {
		return declared
	}
	for _, list := range []struct {
		key, what string
		kinds     []string
	}{{"runtime_kinds", "a runtime kind", p.RuntimeKinds}, {"requirement_kinds", "a requirement kind", p.RequirementKinds}} {
		for i, kind := range list.kinds {
			path := []string{"runtime_provides", list.key, strconv.Itoa(i)}
			r.fail(path, profile.CheckKind(list.what, kind))
			if slices.Contains(list.kinds[:i], kind) {
				r.refuse(path, "%s is listed twice", extensions.Clean(kind, 80))
			}
		}
	}
	own := extensions.Provides{RuntimeKinds: p.RuntimeKinds, RequirementKinds: p.RequirementKinds}
	if p.Replace {
		declared = extensions.Provides{}
	}
	return declared.With(own)
}

// declared returns what the extension declares for this binding, once its config section is right.
func (r *bindingReader) declared(x extensions.Extension) extensions.Descriptor {
	d, before := x.Describe(), len(r.errs)
	r.errs = append(r.errs, checkFields(r.pos, []string{"config"}, d.Config, r.in.Config)...)
	for _, f := range d.Config {
		if _, ok := r.in.Config[f.Name]; f.Required && !ok {
			r.refuse([]string{"config"}, "config.%s is required: %s", f.Name, f.Doc)
		}
	}
	if len(r.errs) > before {
		return d
	}
	d, err := extensions.Declared(x, r.in.Config)
	r.fail([]string{"config"}, err)
	return d
}

func (r *bindingReader) region(c extensions.Capabilities) {
	if region := r.in.Region; region != "" && !slices.Contains(c.Regions, "*") && !slices.Contains(c.Regions, region) {
		e := r.refuse([]string{"region"}, "%q is not a region of this extension: want one of %s", extensions.Clean(region, 80),
			strings.Join(c.Regions, ", "))
		e.Suggestion = strictyaml.Nearest(region, c.Regions)
	} else if region != "" {
		r.fail([]string{"region"}, profile.CheckName(region))
	}
}

// enabled reads whether a place takes part in routing without a pin. Only its user can say that a vendor does.
func (r *bindingReader) enabled(b *Binding) {
	switch {
	case r.in.Enabled == nil && r.pos.Has("enabled"):
		r.refuse([]string{"enabled"}, "enabled is true or false")
	case r.in.Enabled == nil:
	case !*r.in.Enabled, !r.builtin && b.Descriptor.RunsAt(extensions.PlaceAccount):
		b.Enabled = r.in.Enabled
	}
}

// billing reads who pays for a metered place: its owner's key or the platform.
func (r *bindingReader) billing(b *Binding) {
	if r.in.Billing == nil {
		return
	}
	b.Billing = *r.in.Billing
	r.oneOf([]string{"billing"}, b.Billing, route.BillingPlatform, route.BillingBYOK)
}

func (r *bindingReader) oneOf(path []string, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		e := r.refuse(path, "%q is unknown: want %s", extensions.Clean(value, 80), strings.Join(allowed, ", "))
		e.Suggestion = strictyaml.Nearest(value, allowed)
	}
}

func (r *bindingReader) cost(b *Binding) {
	c := r.in.Cost
	if c == nil {
		return
	}
	switch {
	case c.PerHour != nil:
		_, err := meter.ParseMoney(*c.PerHour)
		r.fail([]string{"cost", "per_hour"}, err)
		b.PerHour = *c.PerHour
	case !r.pos.Has("cost", "per_hour"):
		r.refuse([]string{"cost"}, `cost.per_hour is required, as in "0.10 USD"`)
	}
	if c.AsOf != "" {
		r.date("cost", c.AsOf)
	}
	b.PerHourSource, b.PerHourAsOf = c.Source, c.AsOf
}

// checkFields checks each value by itself, so that every mistake has its position. The caller decides what
// is required.
func checkFields(pos interface {
	Errorf(path []string, format string, args ...any) *strictyaml.Error
}, path []string, fields []extensions.Field, values map[string]any) strictyaml.Errors {
	optional := slices.Clone(fields)
	names := make([]string, len(fields))
	for i := range optional {
		optional[i].Required = false
		names[i] = fields[i].Name
	}
	var errs strictyaml.Errors
	for _, key := range slices.Sorted(maps.Keys(values)) {
		err := extensions.CheckFields(strings.Join(path, "."), optional, map[string]any{key: values[key]})
		if i := slices.Index(names, key); err == nil && i >= 0 && fields[i].Type == extensions.FieldDuration {
			_, err = profile.ParseDuration(values[key].(string))
		}
		if err != nil {
			e := pos.Errorf(append(slices.Clone(path), key), "%s", strictyaml.Message(err))
			if !slices.Contains(names, key) {
				e.Suggestion = strictyaml.Nearest(key, names)
			}
			errs = append(errs, e)
		}
	}
	return errs
}

// BuiltIn reports that the binding comes with the program: nobody asked for it.
func (b Binding) BuiltIn() bool { return strings.HasPrefix(b.File, builtinName+"/") }
