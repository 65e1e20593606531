package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// A placeholder {{input.NAME}} stands for the value of an input. Neither
// Compose nor a shell reads it. {{{{input. is the text {{input. itself.
var (
	opening     = regexp.MustCompile(`(?:\{\{)?\{\{[ \t]*inputs?\.`)
	placeholder = regexp.MustCompile(`^\{\{[ \t]*input\.([A-Za-z0-9][A-Za-z0-9_-]*)[ \t]*\}\}`)
)

// InputFields are the fields of a profile that may hold placeholders: "*" is
// any key of a map or any entry of a list. Values are put in after the file was
// read, so none of them ends its field or becomes YAML. Fields that decide
// where a sandbox runs, how long, what it costs and what it reaches are not
// among them, and neither are commands for a shell: there a value would be
// code, while toolchain.env gives it to them as a variable.
var InputFields = inputFields()

func inputFields() []string {
	under := func(prefix string, fields ...string) (out []string) {
		for _, f := range fields {
			out = append(out, prefix+"."+f)
		}
		return out
	}
	stage := []string{"context", "dockerfile", "target", "args.*", "parent_tag", "cache_key"}
	image := slices.Concat([]string{"pull"}, under("build", stage...), under("stages.*", stage...))
	container := slices.Concat(under("image", image...), []string{"command.*", "hostname", "environment.*"})
	return slices.Concat(
		under("image", image...),
		under("compose", "file", "file.*", "service", "profiles.*", "env_files.*", "variables.*"),
		under("containers", slices.Concat(under("agent", container...), under("services.*", container...))...),
		[]string{"setup.instructions", "toolchain.env.*", "readiness.command.*", "readiness.http", "readiness.tcp", "readiness.service"},
	)
}

// inputTree is InputFields by their steps; "" marks one that ends there.
type inputTree map[string]inputTree

var inputRoot = func() inputTree {
	root := inputTree{}
	for _, f := range InputFields {
		at := root
		for _, step := range append(strings.Split(f, "."), "") {
			if at[step] == nil {
				at[step] = inputTree{}
			}
			at = at[step]
		}
	}
	return root
}()

// below is what of t lies under step, nil = nothing.
func (t inputTree) below(step string) inputTree {
	if next := t[step]; next != nil && step != "" {
		return next
	}
	return t["*"]
}

// holds reports that the field itself may hold placeholders.
func (t inputTree) holds() bool { return t[""] != nil }

func takesInput(path []string) bool {
	t := inputRoot
	for _, step := range path {
		t = t.below(step)
	}
	return t.holds()
}

// piece is text or, where input is set, a placeholder for the input of that name.
type piece struct{ text, input string }

// parsePlaceholders takes text apart. What begins like a placeholder and is
// none is refused and not taken for text.
func parsePlaceholders(s string) ([]piece, error) {
	var out []piece
	for s != "" {
		at := opening.FindStringIndex(s)
		if at == nil {
			return append(out, piece{text: s}), nil
		}
		if at[0] > 0 {
			out = append(out, piece{text: s[:at[0]]})
		}
		if s = s[at[0]:]; strings.HasPrefix(s, "{{{{") {
			end := at[1] - at[0]
			out, s = append(out, piece{text: s[2:end]}), s[end:]
			continue
		}
		m := placeholder.FindStringSubmatch(s)
		if m == nil {
			return nil, invalid("%s is no placeholder: want {{input.NAME}}, and {{{{input. for the text {{input.", quoted(s))
		}
		out, s = append(out, piece{input: m[1]}), s[len(m[0]):]
	}
	return out, nil
}

// placeholders finds which fields of a file hold placeholders, and refuses
// those that cannot. kind is "a profile" or the like, for messages.
func placeholders(pos *strictyaml.Positions) (held [][]string, errs strictyaml.Errors) {
	pos.Texts(func(path []string, text string, key bool) {
		if !opening.MatchString(text) || len(path) == 3 && path[0] == "inputs" && path[2] == "doc" {
			return
		}
		switch pieces, err := parsePlaceholders(text); {
		case key:
			errs = append(errs, pos.Errorf(path, "%s: a name cannot hold an input", shownPath(path)))
		case !takesInput(path):
			errs = append(errs, pos.Errorf(path, "%s cannot hold an input%s", shownPath(path), instead(path)))
		case err != nil:
			errs = append(errs, pos.Errorf(path, "%s: %s", shownPath(path), strictyaml.Message(err)))
		case slices.ContainsFunc(pieces, func(p piece) bool { return p.input != "" }):
			held = append(held, slices.Clone(path))
		}
	})
	return held, errs
}

func shownPath(path []string) string {
	var b strings.Builder
	for i, step := range path {
		switch {
		case i > 0 && isIndex(step):
			fmt.Fprintf(&b, "[%s]", step)
		case i > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	return b.String()
}

// instead says what to do in place of an input at path.
func instead(path []string) string {
	if path[0] == "toolchain" && len(path) > 1 && (path[1] == "install" || path[1] == "post_acquire" || path[1] == "pre_release") {
		return `: a shell would read its value as code. Name it in toolchain.env, as in env: { TAG: "{{input.tag}}" }, and write "$TAG" here`
	}
	return ": what a request may choose here, it chooses by its own arguments or by another profile"
}

// mapTexts returns p with every text of InputFields replaced by what f makes of
// it. It changes nothing of p and shares what it did not have to copy.
func (p *Profile) mapTexts(f func(path []string, text string) string) *Profile {
	out := mapValue(reflect.ValueOf(*p), inputRoot, nil, f).Interface().(Profile)
	out.file, out.pos = p.file, p.pos
	return &out
}

// mapValue copies v, which stands at path, where t leads.
func mapValue(v reflect.Value, t inputTree, path []string, f func([]string, string) string) reflect.Value {
	under := func(v reflect.Value, step string) reflect.Value {
		if next := t.below(step); next != nil {
			return mapValue(v, next, append(path[:len(path):len(path)], step), f)
		}
		return v
	}
	switch v.Kind() {
	case reflect.String:
		if t.holds() {
			return reflect.ValueOf(f(path, v.String())).Convert(v.Type())
		}
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(mapValue(v.Elem(), t, path, f))
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				out.Field(i).Set(under(v.Field(i), field.Tag.Get("yaml")))
			}
		}
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(under(v.Index(i), strconv.Itoa(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, under(v.MapIndex(key), key.String()))
		}
		return out
	}
	return v
}

// inputText is a value as it stands in a text: lists and maps as JSON.
func inputText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // convert let only what JSON has pass
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}
