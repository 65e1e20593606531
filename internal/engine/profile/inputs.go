package profile

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Types of inputs.
const (
	TypeString = "string"
	TypeNumber = "number"
	TypeBool   = "bool"
	TypeList   = "list"
	TypeMap    = "map"
)

var inputTypes = []string{TypeString, TypeNumber, TypeBool, TypeList, TypeMap}

const (
	maxInputBytes = 256 << 10 // all inputs of a request as JSON
	maxInputDepth = 16
)

func (c *checker) inputs() {
	if len(c.p.Inputs) > maxList {
		c.fail([]string{"inputs"}, "%d inputs; at most %d are accepted", len(c.p.Inputs), maxList)
	}
	for _, name := range slices.Sorted(maps.Keys(c.p.Inputs)) {
		in := c.p.Inputs[name]
		if len(name) > maxName || !word(name, "_-") {
			c.fail([]string{"inputs", name}, "%s is not an input name: want letters, digits, _ and -", quoted(name))
		}
		c.oneOf(in.Type, "an input's type", inputTypes, "inputs", name, "type")
		if in.Pattern != nil {
			_, err := compile(*in.Pattern)
			c.is(err, "inputs", name, "pattern")
		}
	}
}

func (c *checker) wholeInputs() {
	for _, name := range slices.Sorted(maps.Keys(c.p.Inputs)) {
		in := c.p.Inputs[name]
		if in.Type == nil {
			c.fail([]string{"inputs", name}, "inputs.%s: type is required: one of %s", name, strings.Join(inputTypes, ", "))
			continue
		}
		if !slices.Contains(inputTypes, *in.Type) {
			continue // check reports it
		}
		if in.Pattern != nil && *in.Type != TypeString {
			c.fail([]string{"inputs", name, "pattern"}, "a pattern applies to inputs of type string")
			continue
		}
		for i, allowed := range in.Enum {
			if _, err := convert(*in.Type, allowed); err != nil {
				c.is(err, "inputs", name, "enum", strconv.Itoa(i))
			}
		}
		if in.Default != nil {
			_, err := in.accept(in.Default)
			c.is(err, "inputs", name, "default")
		}
	}
}

// compile returns the expression that the whole value must match.
func compile(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > 1024 {
		return nil, invalid("the pattern has %d bytes; at most 1024 are accepted", len(pattern))
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, invalid("the pattern is not a regular expression: %v", err)
	}
	re, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, invalid("the pattern is too large: %v", err)
	}
	return re, nil
}

// accept checks one value and returns its canonical form.
func (in Input) accept(given any) (any, error) {
	v, err := convert(*in.Type, given)
	if err != nil {
		return nil, err
	}
	if len(in.Enum) > 0 && !slices.ContainsFunc(in.Enum, func(allowed any) bool {
		a, err := convert(*in.Type, allowed)
		return err == nil && reflect.DeepEqual(a, v)
	}) {
		return nil, invalid("%s is not one of %s", render(v), renderList(in.Enum))
	}
	if s, ok := v.(string); ok && in.Pattern != nil {
		re, err := compile(*in.Pattern)
		if err != nil {
			return nil, err
		}
		if !re.MatchString(s) {
			return nil, invalid("%s does not match the pattern %s", quoted(s), *in.Pattern)
		}
	}
	return v, nil
}

// resolveInputs checks given against declared. null counts as not given.
func resolveInputs(profile string, declared Inputs, given map[string]any) (map[string]any, []error) {
	var errs []error
	names := slices.Sorted(maps.Keys(declared))
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		in, ok := declared[name]
		switch {
		case !ok:
			errs = append(errs, undeclared(profile, name, names))
		case given[name] != nil:
			v, err := in.accept(given[name])
			if err != nil {
				errs = append(errs, invalid("inputs.%s: %w", name, err).At("inputs."+name))
			}
			out[name] = v
		}
	}
	for _, name := range names {
		in := declared[name]
		if _, ok := out[name]; ok {
			continue
		}
		if in.Default != nil {
			v, err := in.accept(in.Default)
			if err != nil {
				errs = append(errs, invalid("inputs.%s: the default: %w", name, err).At("inputs."+name))
			}
			out[name] = v
		} else if in.Required != nil && *in.Required {
			errs = append(errs, missing(profile, name, in))
		}
	}
	if b, err := json.Marshal(out); err == nil && len(b) > maxInputBytes {
		errs = append(errs, invalid("the inputs have %d bytes in total; at most %d are accepted", len(b), maxInputBytes))
	}
	return out, errs
}

func undeclared(profile, name string, names []string) error {
	if name == "sandbox_id" { // of callers that name their sandboxes by it
		return invalid("%s declares no input sandbox_id", profile).WithRemedy("set name: it names the sandbox").At("inputs.sandbox_id")
	}
	err := invalid("%s does not declare the input %s", profile, quoted(name)).At("inputs")
	switch near := strictyaml.Nearest(name, names); {
	case near != "":
		return err.WithRemedy("did you mean %s?", near)
	case len(names) == 0:
		return err.WithRemedy("remove inputs: this profile takes none")
	}
	return err.WithRemedy("it takes %s", strings.Join(names, ", "))
}

func missing(profile, name string, in Input) error {
	doc := ""
	if in.Doc != nil && *in.Doc != "" {
		doc = ": " + extensions.Clean(*in.Doc, 200)
	}
	return invalid("the input %s of %s is required%s", name, profile, doc).WithRemedy("set inputs.%s (%s)", name, *in.Type).At("inputs")
}
