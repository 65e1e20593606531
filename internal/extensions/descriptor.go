package extensions

import (
	"fmt"
	"slices"
	"strings"
)

// Descriptor is an extension's static facts. Plans read it; it needs no
// network and no secret.
type Descriptor struct {
	// Handler is the name catalogs bind to: "local", "compose-ssh".
	Handler string
	Title   string
	// Doc is Markdown for the capability page: where it runs, what it needs,
	// how it expires, what it leaves behind.
	Doc   string
	Place Place
	// Config are the fields of the binding's config section, Options those a
	// profile may set for it, Credentials the secrets it takes.
	Config      []Field
	Options     []Field
	Credentials []CredentialField
	// Capabilities is the ceiling.
	Capabilities Capabilities
	Powers       []Power
	Find         Find
	// NamedOnly marks a test double: it is chosen only where a profile names
	// it, never because it happens to fit.
	NamedOnly bool
}

// Has reports a declared power.
func (d Descriptor) Has(p Power) bool { return slices.Contains(d.Powers, p) }

// CredentialField names one secret and the environment variable its vendor uses.
type CredentialField struct {
	Name     string
	Env      string // "" = none
	Required bool
	Doc      string
}

// FieldType is the type of a config or option field.
type FieldType string

const (
	FieldString   FieldType = "string"
	FieldInt      FieldType = "int"
	FieldBool     FieldType = "bool"
	FieldDuration FieldType = "duration" // "90s", "2h", "1d"
	FieldStrings  FieldType = "strings"  // list of string
	FieldMap      FieldType = "map"      // string to string
	FieldJSON     FieldType = "json"     // anything YAML can say, checked by the adapter
)

// Field declares one config or option key.
type Field struct {
	Name     string
	Type     FieldType
	Required bool
	Enum     []string // for FieldString; empty = any
	Doc      string
}

// CheckFields checks values against the declared fields: unknown keys, wrong
// types, values outside an enum, missing required keys. The error is
// KindInvalid and names the key and the declared ones. Numbers may be int,
// int64 or a whole float64 (as JSON decodes them).
func CheckFields(section string, fields []Field, values map[string]any) error {
	byName := map[string]Field{}
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		byName[f.Name] = f
		names = append(names, f.Name)
	}
	slices.Sort(names)
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		f, ok := byName[k]
		if !ok {
			known := "it takes none"
			if len(names) > 0 {
				known = "it takes " + strings.Join(names, ", ")
			}
			return Errorf(KindInvalid, "%s: unknown key %q; %s", section, k, known)
		}
		if err := f.check(values[k]); err != nil {
			return Errorf(KindInvalid, "%s.%s: %w", section, k, err)
		}
	}
	for _, f := range fields {
		if _, ok := values[f.Name]; f.Required && !ok {
			return Errorf(KindInvalid, "%s.%s is required: %s", section, f.Name, f.Doc)
		}
	}
	return nil
}

// Whole reads a value of FieldInt that CheckFields took, or what to take where
// there is none.
func Whole(v any, otherwise int64) int64 {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return otherwise
}

// Strings reads a value of FieldStrings that CheckFields took, or what to take
// where there is none.
func Strings(v any, otherwise ...string) []string {
	list, ok := v.([]any)
	if !ok {
		return otherwise
	}
	all := make([]string, 0, len(list))
	for _, e := range list {
		text, _ := e.(string)
		all = append(all, text)
	}
	return all
}

func (f Field) check(v any) error {
	ok := false
	switch f.Type {
	case FieldString, FieldDuration:
		var s string
		if s, ok = v.(string); ok && len(f.Enum) > 0 && !slices.Contains(f.Enum, s) {
			return fmt.Errorf("%q is not one of %s", s, strings.Join(f.Enum, ", "))
		}
	case FieldInt:
		switch n := v.(type) {
		case int, int64:
			ok = true
		case float64:
			ok = n == float64(int64(n))
		}
	case FieldBool:
		_, ok = v.(bool)
	case FieldStrings:
		var list []any
		if list, ok = v.([]any); ok {
			ok = !slices.ContainsFunc(list, func(e any) bool { _, s := e.(string); return !s })
		}
	case FieldMap:
		var m map[string]any
		if m, ok = v.(map[string]any); ok {
			for _, e := range m {
				if _, s := e.(string); !s {
					ok = false
				}
			}
		}
	case FieldJSON:
		ok = true
	}
	if !ok {
		return fmt.Errorf("want %s, got %T", f.Type, v)
	}
	return nil
}

// Validate checks that the descriptor agrees with itself; the conformance
// suite calls it. Errors are KindInternal: a defect of the adapter.
func (d Descriptor) Validate() error {
	bad := func(format string, args ...any) error {
		return Errorf(KindInternal, "descriptor of %q: %w", d.Handler, fmt.Errorf(format, args...))
	}
	c := d.Capabilities
	for name, set := range map[string]string{"handler": d.Handler, "title": d.Title, "doc": d.Doc, "place": string(d.Place),
		"transportModel": c.TransportModel, "idleCostModel": c.IdleCostModel, "billingModel": c.BillingModel,
		"egressDefault": c.EgressDefault, "pricing_model": c.PricingModel, "egress": string(c.Egress),
		"expiry": string(c.Expiry), "find": string(d.Find.Strength)} {
		if set == "" {
			return bad("%s is not declared", name)
		}
	}
	for _, e := range []struct {
		name, value string
		allowed     []string
	}{
		{"place", string(d.Place), []string{string(PlaceMachine), string(PlaceHost), string(PlaceAccount)}},
		{"transportModel", c.TransportModel, []string{TransportDialIn, TransportDialOut, TransportEither}},
		{"idleCostModel", c.IdleCostModel, []string{IdleZero, IdleStorageOnly, IdleMetered}},
		{"billingModel", c.BillingModel, []string{BillingFixed, BillingWallClock, BillingActiveCPU, BillingInvocation}},
		{"egressDefault", c.EgressDefault, []string{NetworkAllow, NetworkDeny}},
		{"pricing_model", c.PricingModel, []string{PricingSelfHosted, PricingMetered}},
		{"expiry", string(c.Expiry), []string{string(ExpiryNative), string(ExpiryHost), string(ExpirySweep)}},
		{"find", string(d.Find.Strength), []string{string(FindStrong), string(FindEventual), string(FindNone)}},
	} {
		if !slices.Contains(e.allowed, e.value) {
			return bad("%s %q is not one of %s", e.name, e.value, strings.Join(e.allowed, ", "))
		}
	}
	if !slices.Contains(EgressLevels, c.Egress) {
		return bad("egress %q is unknown", c.Egress)
	}
	if len(c.IsolationLevels) == 0 || len(c.OS) == 0 || len(c.Arch) == 0 || len(c.Regions) == 0 {
		return bad("isolation levels, os, arch and regions each need at least one value")
	}
	if !slices.IsSortedFunc(c.IsolationLevels, func(a, b Isolation) int {
		return slices.Index(IsolationLevels, a) - slices.Index(IsolationLevels, b)
	}) || slices.ContainsFunc(c.IsolationLevels, func(l Isolation) bool { return !slices.Contains(IsolationLevels, l) }) {
		return bad("isolation levels %v are unknown or not weakest first", c.IsolationLevels)
	}
	if len(c.SecretsAs) == 0 || slices.ContainsFunc(c.SecretsAs, func(s SecretDelivery) bool { return !slices.Contains(SecretDeliveries, s) }) {
		return bad("deliveries of secrets %v: want at least one of %v", c.SecretsAs, SecretDeliveries)
	}
	if (d.Find.Strength == FindEventual) != (d.Find.Settle > 0) {
		return bad("a settle time belongs to eventual find and to nothing else")
	}
	for _, p := range d.Powers {
		if !slices.Contains(Powers, p) {
			return bad("power %q is unknown", p)
		}
	}
	for _, pair := range []struct {
		flag  string
		set   bool
		power Power
	}{
		{"supportsFsSnapshot", c.FsSnapshot, PowerSnapshot},
		{"supportsPauseResume", c.PauseResume, PowerPause},
		{"supportsCapacityQuery", c.CapacityQuery, PowerCapacity},
		{"extend_ttl", c.ExtendTTL, PowerExtend},
	} {
		if pair.set && !d.Has(pair.power) {
			return bad("%s is declared without the power %q", pair.flag, pair.power)
		}
	}
	if c.PauseResume != d.Has(PowerPause) || c.CapacityQuery != d.Has(PowerCapacity) || c.ExtendTTL != d.Has(PowerExtend) {
		return bad("pause, capacity and extend: flag and power must agree")
	}
	if c.CustomNetworkPolicy != c.Egress.Includes(EgressCIDR) {
		return bad("supportsCustomNetworkPolicy and egress %q disagree", c.Egress)
	}
	return nil
}
