package httpledger

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// here are the methods of a ledger that ask nobody.
var here = []string{"ID", "URL", "Close", "Guard"}

// operation is the name of the route for a method.
func operation(method string) string {
	var b strings.Builder
	for i, r := range method {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func TestEveryOperationHasARoute(t *testing.T) {
	t.Parallel()
	want := []string{opHello}
	of := reflect.TypeFor[ledger.Ledger]()
	for i := range of.NumMethod() {
		if name := of.Method(i).Name; !slices.Contains(here, name) {
			want = append(want, operation(name))
		}
	}
	var have []string
	for name := range routes {
		have = append(have, name)
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		t.Errorf("operations %q\nroutes     %q", want, have)
	}
}

// A document that is nil is left out where it is written: null is a value.
func TestNoTypeWritesANilDocumentAsNull(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(of.Elem())
		case reflect.Map:
			walk(of.Elem())
		case reflect.Struct:
			if of == reflect.TypeFor[time.Time]() {
				return
			}
			for i := range of.NumField() {
				f := of.Field(i)
				if f.Type == reflect.TypeFor[json.RawMessage]() && !strings.Contains(f.Tag.Get("json"), "omitempty") {
					t.Errorf("%s.%s needs `json:\",omitempty\"`", of, f.Name)
				}
				walk(f.Type)
			}
		}
	}
	of := reflect.TypeFor[ledger.Ledger]()
	for i := range of.NumMethod() {
		m := of.Method(i).Type
		for n := range m.NumIn() {
			walk(m.In(n))
		}
		for n := range m.NumOut() {
			walk(m.Out(n))
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
