package docfacts

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const profilePage = "docs/guides/profile-reference.md"

// row is one line of a table of the profile reference.
type row struct{ typ, def, constraint, example string }

var fieldRow = regexp.MustCompile("(?m)^\\| `([a-zA-Z_.]+)` \\| (.*?) \\| (.*?) ?\\| (.*?) \\| `(.*)` \\|$")

// priceRow is a line of the table of a price book: four cells.
var priceRow = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| [^|]+ \\| [^|]+ \\| [^|]+ \\|$")

func profileRows(t *testing.T) map[string]row {
	t.Helper()
	rows := map[string]row{}
	page := pages(t)[profilePage]
	for _, m := range fieldRow.FindAllStringSubmatch(page, -1) {
		if _, twice := rows[m[1]]; twice {
			t.Errorf("%s is in the page twice", m[1])
		}
		rows[m[1]] = row{typ: m[2], def: m[3], constraint: m[4], example: m[5]}
	}
	if n := strings.Count(page, "\n| `"); n != len(rows) {
		t.Errorf("%d rows of %s begin with a field, %d of them have all five cells", n, profilePage, len(rows))
	}
	return rows
}

// profileFields are the fields of a profile by their path, with the words for
// their types. A block that is used in several places is taken apart where it
// comes first.
func profileFields(t *testing.T) map[string]string {
	t.Helper()
	out, seen := map[string]string{}, map[reflect.Type]bool{}
	var walk func(prefix string, of reflect.Type)
	walk = func(prefix string, of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		for f := range fieldsOf(of) {
			path := prefix + f.Tag.Get("yaml")
			word, block := typeWord(t, f.Type)
			out[path] = word
			switch {
			case block == nil:
			case word == "map of blocks":
				walk(path+".NAME.", block)
			default:
				walk(path+".", block)
			}
		}
	}
	walk("", reflect.TypeFor[profile.Profile]())
	return out
}

func fieldsOf(of reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range of.NumField() {
			if f := of.Field(i); f.Tag.Get("yaml") != "" && !yield(f) {
				return
			}
		}
	}
}

// typeWord is how the page calls a type, and the block it is made of, if any.
func typeWord(t *testing.T, of reflect.Type) (string, reflect.Type) {
	t.Helper()
	if of.Kind() == reflect.Pointer {
		return typeWord(t, of.Elem())
	}
	switch of {
	case reflect.TypeFor[profile.Strings](), reflect.TypeFor[profile.Entrypoint]():
		return "text or list of texts", nil
	case reflect.TypeFor[profile.Duration]():
		return "duration", nil
	case reflect.TypeFor[profile.CPU]():
		return "number", nil
	case reflect.TypeFor[profile.GPU]():
		return "number, text or map", nil
	case reflect.TypeFor[[]profile.SecretRef]():
		return "list of references", nil
	case reflect.TypeFor[[]profile.Step]():
		return "list of commands", nil
	}
	switch of.Kind() {
	case reflect.String:
		return "text", nil
	case reflect.Bool:
		return "true or false", nil
	case reflect.Int64:
		return "whole number", nil
	case reflect.Interface:
		return "any value", nil
	case reflect.Struct:
		return "block", of
	case reflect.Slice, reflect.Map:
		kind := strings.ToLower(of.Kind().String())
		if kind == "slice" {
			kind = "list"
		}
		switch word, block := typeWord(t, of.Elem()); word {
		case "text", "block":
			return kind + " of " + word + "s", block
		case "any value":
			return kind + " of values", nil
		default:
			return kind + " of maps", nil
		}
	}
	t.Fatalf("the page has no word for the type %s", of)
	return "", nil
}

func TestTheProfileReferenceHasEveryField(t *testing.T) {
	t.Parallel()
	rows, fields := profileRows(t), profileFields(t)
	if len(fields) < 80 {
		t.Fatalf("only %d fields were found in the code", len(fields))
	}
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		r, ok := rows[path]
		switch {
		case !ok:
			t.Errorf("%s lacks the field %s (%s)", profilePage, path, fields[path])
		case r.typ != fields[path]:
			t.Errorf("%s: the page calls the type %q, the code says %q", path, r.typ, fields[path])
		case strings.TrimSpace(r.constraint) == "" || strings.TrimSpace(r.example) == "":
			t.Errorf("%s: a cell is empty", path)
		}
	}
	for path := range rows {
		if _, ok := fields[path]; !ok {
			t.Errorf("%s has the field %s, and the code does not", profilePage, path)
		}
	}
}

// Every example is a profile's, and the long one a whole profile.
func TestTheExamplesOfTheProfileReferenceAreRead(t *testing.T) {
	t.Parallel()
	for path, r := range profileRows(t) {
		if key, _, _ := strings.Cut(r.example, ":"); key != path[strings.LastIndex(path, ".")+1:] {
			t.Errorf("%s: the example %q is of another field", path, r.example)
		}
		text := ""
		for _, basic := range []string{`id: profile.x`, `version: "1.0.0"`, `extends: profile.base`} {
			if key, _, _ := strings.Cut(basic, ":"); key != path {
				text += basic + "\n"
			}
		}
		steps := strings.Split(path, ".")
		for depth, step := range steps[:len(steps)-1] {
			text += fmt.Sprintf("%*s%s:\n", 2*depth, "", strings.Replace(step, "NAME", "repo", 1))
		}
		text += fmt.Sprintf("%*s%s\n", 2*(len(steps)-1), "", r.example)
		if _, err := profile.Parse(path, []byte(text)); err != nil {
			t.Errorf("the example of %s: %v\n%s", path, err, text)
		}
	}
	_, rest, _ := strings.Cut(pages(t)[profilePage], "\n    id:")
	block, _, _ := strings.Cut("    id:"+rest, "\n\n")
	if _, err := profile.Parse("example", []byte(strings.ReplaceAll(block, "\n    ", "\n")[4:])); err != nil {
		t.Errorf("the whole example: %v", err)
	}
}

func TestTheProfileReferenceHasTheWordsAndBoundsOfTheCode(t *testing.T) {
	t.Parallel()
	rows := profileRows(t)
	has := func(path, cell, word string) {
		if !strings.Contains(cell, "`"+word+"`") {
			t.Errorf("%s: the page does not say %s", path, word)
		}
	}
	for _, s := range profile.Strategies {
		has("route.strategy", rows["route.strategy"].constraint, s)
	}
	has("route.strategy", rows["route.strategy"].def, profile.Strategies[0])
	for _, l := range extensions.IsolationLevels {
		has("isolation.level", rows["isolation.level"].constraint, string(l))
	}
	has("ttl.default", rows["ttl.default"].def, profile.FormatDuration(profile.DefaultTTL))
	has("ttl.default", rows["ttl.default"].constraint, profile.FormatDuration(profile.MinTTL))
	has("ttl.max", rows["ttl.max"].def, profile.FormatDuration(profile.MaxTTL))
}
