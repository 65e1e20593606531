package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// Book returns the price book of a binding: the one that names it, else, if a vendor bills and the binding
// states no cost of its own, the one of its handler; nil if there is none.
func (c *Catalog) Book(binding string) *meter.Book {
	if i := slices.IndexFunc(c.Books, func(b meter.Book) bool { return b.Extension == binding }); i >= 0 {
		return &c.Books[i]
	}
	b, ok := c.Binding(binding)
	if !ok || b.PerHour != "" || b.Capabilities.SelfHosted() {
		return nil
	}
	if i := slices.IndexFunc(c.Books, func(m meter.Book) bool { return m.Extension == "" && m.Handler == b.Handler }); i >= 0 {
		return &c.Books[i]
	}
	return nil
}

// priced returns what a book prices, and the field that says so.
func priced(b meter.Book) (id, field string) {
	if b.Extension == "" {
		return "handler " + b.Handler, "handler"
	}
	return b.Extension, "extension"
}

func (ld *loader) addBook(f file, builtin bool) {
	d, err := parse(f, decode[meter.Book])
	b, pos := d.in, d.pos
	errs := strictyaml.Collect(f.name, err)
	if len(errs) == 0 {
		b.Components = withDays(b.Components)
		if err := b.Validate(); err != nil {
			errs = bookErrors(pos, err)
		} else if asOf, err := time.Parse(time.DateOnly, b.AsOf); err == nil && !builtin && meter.Ahead(asOf, ld.now) {
			errs = strictyaml.Errors{pos.Errorf([]string{"as_of"}, ahead, b.AsOf)}
		}
	}
	ld.errs = append(ld.errs, errs...)
	if len(errs) > 0 {
		ld.broken[b.ID] = true
		return
	}
	if _, bound := ld.bindings[b.Extension]; builtin && b.Extension != "" && !bound {
		return
	}
	id, field := priced(b)
	if was, ok := ld.books[id]; ok && !overrides(ld, was, pos.Errorf([]string{field}, ""), "the price book of "+id) {
		return
	}
	if was, ok := ld.bookIDs[b.ID]; ok && was.value != id {
		if was.layer == ld.layer {
			ld.errs = append(ld.errs, pos.Errorf([]string{"id"}, "%s already prices %s, in %s", b.ID, was.value, was.file))
			return
		}
		if ld.inUse(was.value) {
			ld.notices = append(ld.notices, pos.Errorf([]string{"id"}, "%s replaces the price book of %s, which priced %s", b.ID, was.file,
				was.value))
		}
		delete(ld.books, was.value)
	}
	dated, _ := pos.At("as_of")
	b.Where = fmt.Sprintf("%s:%d", f.name, dated)
	line, col := pos.At(field)
	ld.books[id] = entry[meter.Book]{value: b, file: f.name, layer: ld.layer, line: line, col: col}
	ld.bookIDs[b.ID] = entry[string]{value: id, file: f.name, layer: ld.layer}
}

// withDays rewrites durations with days, which catalogs allow everywhere, to Go's format for the meter. It
// leaves malformed ones for the meter to refuse.
func withDays(prices []meter.BookPrice) []meter.BookPrice {
	prices = slices.Clone(prices)
	for i := range prices {
		for _, s := range []*string{&prices[i].Minimum, &prices[i].Increment} {
			if d, err := profile.ParseDuration(*s); err == nil && strings.Contains(*s, "d") {
				*s = d.String()
			}
		}
	}
	return prices
}

// inUse reports whether what a book prices exists.
func (ld *loader) inUse(id string) bool {
	_, bound := ld.bindings[id]
	_, known := ld.handlers[ld.books[id].value.Handler]
	return bound || known
}

func bookErrors(pos *strictyaml.Positions, err error) strictyaml.Errors {
	var errs strictyaml.Errors
	for _, fe := range meter.FieldErrors(err) {
		errs = append(errs, pos.Errorf(fe.Path, "%s", fe.Error()))
	}
	if len(errs) == 0 {
		errs = append(errs, pos.Errorf(nil, "%s", err.Error()))
	}
	return errs
}

// checkBooks notes the user's books that price nothing here. Built-in books may be listed even if this
// build lacks their vendor.
func (ld *loader) checkBooks() {
	for _, id := range slices.Sorted(maps.Keys(ld.books)) {
		e := ld.books[id]
		at := &strictyaml.Error{File: e.file, Line: e.line, Column: e.col}
		if ext := e.value.Extension; ext != "" {
			if _, ok := ld.bindings[ext]; !ok && !ld.broken[ext] {
				ld.notices = append(ld.notices, ld.unbound(at, ext, "the price book has no effect"))
			}
			continue
		}
		if _, ok := ld.handlers[e.value.Handler]; !ok && !strings.HasPrefix(e.file, builtinName+"/") {
			at.Msg = "no handler " + strconv.Quote(e.value.Handler) + " in this build: the price book has no effect"
			at.Suggestion = strictyaml.Nearest(e.value.Handler, ld.handlerNames())
			ld.notices = append(ld.notices, at)
		}
	}
}
