package docfacts

import (
	"reflect"
	"slices"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// The guide has a row for each field of a price book, and no other.
func TestTheGuideHasEveryFieldOfAPriceBook(t *testing.T) {
	t.Parallel()
	var want []string
	var walk func(prefix string, of reflect.Type)
	walk = func(prefix string, of reflect.Type) {
		for f := range fieldsOf(of) {
			name := f.Tag.Get("yaml")
			if name == "-" {
				continue
			}
			want = append(want, prefix+name)
			inner := f.Type
			if inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				walk(prefix+name+".", inner)
			}
		}
	}
	walk("", reflect.TypeFor[meter.Book]())
	page := pages(t)["docs/guides/prices-and-quotes.md"]
	var got []string
	for _, m := range priceRow.FindAllStringSubmatch(page, -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the page has %v, a book %v", got, want)
	}
}
