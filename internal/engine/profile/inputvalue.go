package profile

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// convert converts v to the declared type. Text that is exactly a number or a boolean counts as one,
// because Terraform passes maps of text.
func convert(want string, v any) (any, error) {
	v, err := canonical(v, 0)
	if err != nil {
		return nil, err
	}
	ok := false
	switch want {
	case TypeString:
		_, ok = v.(string)
	case TypeNumber:
		if s, text := v.(string); text {
			if n, err := canonicalNumber(json.Number(s)); err == nil {
				return n, nil
			}
			break
		}
		switch v.(type) {
		case int64, float64:
			ok = true
		}
	case TypeBool:
		if s, text := v.(string); text && (s == "true" || s == "false") {
			return s == "true", nil
		}
		_, ok = v.(bool)
	case TypeList:
		_, ok = v.([]any)
	case TypeMap:
		_, ok = v.(map[string]any)
	}
	if !ok {
		return nil, invalid("want a value of type %s, got %s", want, nameOf(v))
	}
	return v, nil
}

// canonical brings values from YAML, JSON and Terraform to one form: string, bool, int64 if whole,
// float64, []any, map[string]any.
func canonical(v any, depth int) (any, error) {
	if depth > maxInputDepth {
		return nil, invalid("the value is nested deeper than %d levels", maxInputDepth)
	}
	switch x := v.(type) {
	case nil, bool:
		return x, nil
	case string:
		return x, checkInputText(x)
	case json.Number:
		return canonicalNumber(x)
	}
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return r.Int(), nil
	case r.CanFloat():
		return canonicalFloat(r.Float())
	case r.Kind() == reflect.Slice:
		out := make([]any, r.Len())
		for i := range out {
			e, err := canonical(r.Index(i).Interface(), depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = e
		}
		return out, nil
	case r.Kind() == reflect.Map && r.Type().Key().Kind() == reflect.String:
		out := make(map[string]any, r.Len())
		for _, k := range r.MapKeys() {
			if err := checkInputText(k.String()); err != nil {
				return nil, err
			}
			e, err := canonical(r.MapIndex(k).Interface(), depth+1)
			if err != nil {
				return nil, err
			}
			out[k.String()] = e
		}
		return out, nil
	}
	return nil, invalid("a value of type %T is not accepted", v)
}

func checkInputText(s string) error {
	if len(s) > maxText {
		return invalid("the text has %d bytes; at most %d are accepted", len(s), maxText)
	}
	return checkValue("the text", s)
}

func canonicalNumber(n json.Number) (any, error) {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil && n.String()[0] != '+' {
		return i, nil
	}
	if !json.Valid([]byte(n)) {
		return nil, invalid("%s is not a number", quoted(n.String()))
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return nil, invalid("%s is not a number", quoted(n.String()))
	}
	return canonicalFloat(f)
}

func canonicalFloat(f float64) (any, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, invalid("%v is not a finite number", f)
	case f == math.Trunc(f) && math.Abs(f) < 1<<53:
		return int64(f), nil
	}
	return f, nil
}

func nameOf(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case string:
		return "the text " + quoted(x)
	case bool:
		return "the truth value " + strconv.FormatBool(x)
	case int64, float64:
		return fmt.Sprintf("the number %v", x)
	case []any:
		return "a list"
	}
	return "a map"
}

func render(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "the value"
	}
	return extensions.Clean(string(b), 80)
}

func renderList(list []any) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = render(v)
	}
	return extensions.Clean(strings.Join(words, ", "), 400)
}
