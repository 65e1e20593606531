package meter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// dateForm is the date format of books.
const dateForm = time.DateOnly

// freshFor is how long a book without valid_until is valid.
const freshFor = 365 * 24 * time.Hour

// Validate checks everything but the age of the book. The error is KindInvalid and holds one *FieldError
// per mistake (errors.As finds the first, FieldErrors all).
func (b *Book) Validate() error {
	c := checker{}
	b.checkHead(&c)
	seen := map[string]bool{}
	for i, p := range b.Components {
		c.at = []string{"components", strconv.Itoa(i)}
		b.checkPrice(&c, p)
		key := strings.Join([]string{p.Component, p.Model, p.Region, p.Label}, "\x00")
		if seen[key] {
			c.bad("component", "%s is priced twice for the same model, region and label", p.Component)
		}
		seen[key] = true
	}
	if len(c.errs) == 0 {
		return nil
	}
	return &extensions.Error{Kind: extensions.KindInvalid, Err: errors.Join(c.errs...)}
}

// FieldErrors returns every mistake in an error of Validate.
func FieldErrors(err error) []*FieldError {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return nil
	}
	var all []*FieldError
	for _, e := range joined.Unwrap() {
		var f *FieldError
		if errors.As(e, &f) {
			all = append(all, f)
		}
	}
	return all
}

// Ahead reports whether date, midnight in UTC, has begun nowhere on earth: the earliest time zone is 14
// hours ahead of UTC.
func Ahead(date, now time.Time) bool { return date.After(now.Add(14 * time.Hour)) }

// Fresh returns an error unless the book's prices are valid at now: as_of must not be Ahead, and
// valid_until (default as_of + 365 days) must not have passed. Call it where money is at stake; a plan
// does not read the clock.
func (b *Book) Fresh(now time.Time) error {
	from, err := time.Parse(dateForm, b.AsOf)
	if err != nil {
		return extensions.Errorf(extensions.KindInvalid, "%s: as_of %q is not a date", b.title(), b.AsOf)
	}
	if Ahead(from, now) {
		return extensions.Errorf(extensions.KindInvalid, "%s has the date %s, which is in the future", b.title(), b.AsOf).
			WithRemedy("correct as_of, or this machine's clock")
	}
	until := from.Add(freshFor)
	if b.ValidUntil != "" {
		if until, err = time.Parse(dateForm, b.ValidUntil); err != nil {
			return extensions.Errorf(extensions.KindInvalid, "%s: valid_until %q is not a date", b.title(), b.ValidUntil)
		}
	}
	if now.After(until.Add(24 * time.Hour)) { // the last day counts
		return extensions.Errorf(extensions.KindInvalid, "%s is stale: its prices of %s were valid until %s", b.title(), b.AsOf,
			until.Format(dateForm)).
			WithRemedy("check %s and add a book with today's as_of (or a later valid_until) to your catalog's prices folder", b.Source)
	}
	return nil
}

// title returns the book's name and position.
func (b *Book) title() string {
	if b.Where == "" {
		return "price book " + b.ID
	}
	return "price book " + b.ID + " (" + b.Where + ")"
}

// checker collects mistakes below a path.
type checker struct {
	at   []string
	errs []error
}

func (c *checker) bad(field, format string, args ...any) {
	path := slices.Clone(c.at)
	if field != "" {
		path = append(path, field)
	}
	c.errs = append(c.errs, &FieldError{Path: path, Err: fmt.Errorf(format, args...)})
}

func (c *checker) oneOf(field, value string, allowed ...string) bool {
	if slices.Contains(allowed, value) {
		return true
	}
	c.bad(field, "%q is not one of %s", value, strings.Join(allowed, ", "))
	return false
}

// text refuses characters that could forge a line of output.
func (c *checker) text(field, value string, required bool) {
	switch {
	case required && strings.TrimSpace(value) == "":
		c.bad(field, "it is required")
	case strings.ContainsFunc(value, unicode.IsControl):
		c.bad(field, "it contains a control character")
	}
}

func (c *checker) date(field, value string) time.Time {
	t, err := time.Parse(dateForm, value)
	if err != nil {
		c.bad(field, "%q is not a date: want YYYY-MM-DD", value)
	}
	return t
}

func (b *Book) checkHead(c *checker) {
	c.text("id", b.ID, true)
	c.text("version", b.Version, true)
	c.text("source", b.Source, true)
	b.checkTarget(c)
	from := c.date("as_of", b.AsOf)
	if b.ValidUntil != "" && c.date("valid_until", b.ValidUntil).Before(from) {
		c.bad("valid_until", "%s is before as_of %s", b.ValidUntil, b.AsOf)
	}
	if err := b.Currency.Check(); err != nil {
		c.bad("currency", "%w", err)
	}
	c.oneOf("confidence", string(b.Confidence), string(ConfidenceExact), string(ConfidenceEstimated), string(ConfidenceUnknown))
	c.oneOf("billing", b.Billing, extensions.BillingWallClock, extensions.BillingActiveCPU, extensions.BillingInvocation,
		extensions.BillingFixed)
	if b.Idle != "" && c.oneOf("idle", b.Idle, extensions.IdleZero, extensions.IdleStorageOnly, extensions.IdleMetered) &&
		b.Billing == extensions.BillingFixed && b.Idle != extensions.IdleMetered {
		c.bad("idle", "a fixed price is the same while paused: remove idle, or set metered")
	}
	if b.Counts != "" {
		c.oneOf("counts", b.Counts, CountsReserved, CountsLarger)
	}
	if _, err := b.Defaults.sizes(); err != nil {
		c.bad("defaults", "%w", err)
	}
	if b.MemoryMBPerCPU < 0 {
		c.bad("memory_mb_per_cpu", "%d is negative", b.MemoryMBPerCPU)
	}
	b.checkShape(c)
	c.at = []string{"notes"}
	for i, n := range b.Notes {
		c.text(strconv.Itoa(i), n, true)
	}
}

// checkTarget requires one binding or one vendor.
func (b *Book) checkTarget(c *checker) {
	c.text("extension", b.Extension, false)
	c.text("handler", b.Handler, false)
	switch rest, ok := strings.CutPrefix(b.Extension, "ext."); {
	case b.Extension != "" && b.Handler != "":
		c.bad("handler", "a book prices one extension, or with handler all of a vendor, not both")
	case b.Handler == "" && (!ok || rest == ""):
		c.bad("extension", "%q is not the ID of a binding such as ext.e2b", b.Extension)
	}
}

// checkShape refuses a book without a price that its billing shape bills.
func (b *Book) checkShape(c *checker) {
	has := func(component string) bool {
		return slices.ContainsFunc(b.Components, func(p BookPrice) bool { return p.Component == component })
	}
	switch {
	case len(b.Components) == 0:
		c.bad("components", "a price book needs at least one price; an unknown one has confidence unknown and no price")
	case b.Billing == extensions.BillingInvocation && !has(ComponentCreation):
		c.bad("components", "billing invocation needs a price for creation")
	case b.Billing == extensions.BillingActiveCPU && !has(ComponentVCPU):
		c.bad("components", "billing active-cpu needs a price for vcpu")
	case (b.Billing == extensions.BillingWallClock || b.Billing == extensions.BillingFixed) &&
		!slices.ContainsFunc(b.Components, func(p BookPrice) bool { return timed(p.Component) }):
		c.bad("components", "billing %s needs a price for time: sandbox, vcpu, memory, disk or gpu", b.Billing)
	}
}

func (d BookDefaults) sizes() (Sizes, error) {
	if d.MemoryMB < 0 || d.DiskMB < 0 {
		return Sizes{}, errors.New("a size is negative")
	}
	s := Sizes{MemoryMiB: d.MemoryMB, DiskMiB: d.DiskMB}
	if d.CPU == "" {
		return s, nil
	}
	n, err := parseDecimal(d.CPU, 3)
	if err == nil && n <= 0 {
		err = fmt.Errorf("cpu %s is not positive", d.CPU)
	}
	s.VCPUMilli = n
	return s, err
}
