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

var inputPatterns = func() (out [][]string) {
	for _, f := range InputFields {
		out = append(out, strings.Split(f, "."))
	}
	return out
}()

// takesInput reports that the field at path may hold placeholders; with
// leadsTo, that one below it may.
func takesInput(path []string, leadsTo bool) bool {
	return slices.ContainsFunc(inputPatterns, func(pattern []string) bool {
		if len(pattern) < len(path) || !leadsTo && len(pattern) != len(path) {
			return false
		}
		for i, step := range path {
			if pattern[i] != "*" && pattern[i] != step {
				return false
			}
		}
		return true
	})
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
		case !takesInput(path, false):
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
	out := mapValue(reflect.ValueOf(*p), nil, f).Interface().(Profile)
	out.file, out.pos = p.file, p.pos
	return &out
}

func mapValue(v reflect.Value, path []string, f func([]string, string) string) reflect.Value {
	below := func(step string) []string { return append(path[:len(path):len(path)], step) }
	if len(path) > 0 && !takesInput(path, true) {
		return v
	}
	switch v.Kind() {
	case reflect.String:
		if takesInput(path, false) {
			return reflect.ValueOf(f(path, v.String())).Convert(v.Type())
		}
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(mapValue(v.Elem(), path, f))
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			if t := v.Type().Field(i); t.IsExported() {
				name, _, _ := strings.Cut(t.Tag.Get("yaml"), ",")
				out.Field(i).Set(mapValue(v.Field(i), below(name), f))
			}
		}
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(mapValue(v.Index(i), below(strconv.Itoa(i)), f))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, mapValue(v.MapIndex(key), below(key.String()), f))
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
