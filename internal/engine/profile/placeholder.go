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

// A placeholder {{input.NAME}} stands for the value of an input. Neither Compose nor a shell reads this
// syntax. {{{{input. stands for the text {{input. itself.
var (
	opening     = regexp.MustCompile(`(?:\{\{)?\{\{[ \t]*inputs?\.`)
	placeholder = regexp.MustCompile(`^\{\{[ \t]*input\.([A-Za-z0-9][A-Za-z0-9_-]*)[ \t]*\}\}`)
)

// InputFields are the fields of a profile that may hold placeholders; "*" is any key of a map or entry of
// a list. Values are filled in after parsing, so none can end its field or become YAML. Excluded are
// fields that decide where a sandbox runs, for how long, at what cost and what it reaches, and commands
// for a shell: there a value would be code, while toolchain.env passes it as a variable.
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

// inputTree holds InputFields by path step; "" marks a field that ends there.
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

// below returns the part of t under step, nil if there is none.
func (t inputTree) below(step string) inputTree {
	if next := t[step]; next != nil && step != "" {
		return next
	}
	return t["*"]
}

// takesInput reports whether the field itself may have placeholders.
func (t inputTree) takesInput() bool { return t[""] != nil }

func takesInput(path []string) bool {
	t := inputRoot
	for _, step := range path {
		t = t.below(step)
	}
	return t.takesInput()
}

// piece is text or, if input is set, a placeholder for that input.
type piece struct{ text, input string }

// parsePlaceholders splits text into pieces. Text that starts like a placeholder but is none is refused
// rather than taken as text.
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
			return nil, invalid("%s is not a placeholder: want {{input.NAME}}, or {{{{input. for the text {{input.", quoted(s))
		}
		out, s = append(out, piece{input: m[1]}), s[len(m[0]):]
	}
	return out, nil
}

// placeholders returns which fields of a file hold placeholders, and refuses those that must not.
func placeholders(pos *strictyaml.Positions) (deferred [][]string, errs strictyaml.Errors) {
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
			deferred = append(deferred, slices.Clone(path))
		}
	})
	return deferred, errs
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

// instead says what to use in place of an input at path.
func instead(path []string) string {
	if path[0] == "toolchain" && len(path) > 1 && (path[1] == "install" || path[1] == "post_acquire" || path[1] == "pre_release") {
		return `: a shell would run its value as code. Set a variable in toolchain.env, ` +
			`as in env: { TAG: "{{input.tag}}" }, and write "$TAG" here`
	}
	return ": a request sets this with its own arguments or another profile"
}

// mapTexts returns p with every text of InputFields replaced by the result of f. It leaves p unchanged and
// shares what needed no copy.
func (p *Profile) mapTexts(f func(path []string, text string) string) *Profile {
	out := mapValue(reflect.ValueOf(*p), inputRoot, nil, f).Interface().(Profile)
	out.file, out.pos = p.file, p.pos
	return &out
}

// mapValue copies v, which stands at path, as far as t leads.
func mapValue(v reflect.Value, t inputTree, path []string, f func([]string, string) string) reflect.Value {
	under := func(v reflect.Value, step string) reflect.Value {
		if next := t.below(step); next != nil {
			return mapValue(v, next, append(path[:len(path):len(path)], step), f)
		}
		return v
	}
	switch v.Kind() {
	case reflect.String:
		if t.takesInput() {
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

// inputText returns a value as text: lists and maps as JSON.
func inputText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // convert only lets JSON values pass
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}
