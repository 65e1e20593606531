package meter

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const bookYAML = `
id: prices.e2b
extension: ext.e2b
version: "2026-08-22"
as_of: "2026-08-22"
valid_until: "2027-02-22"
source: https://e2b.dev/docs/billing
currency: USD
confidence: exact
billing: wall-clock
idle: storage-only
defaults: { cpu: "0.5", memory_mb: 512, disk_mb: 10240 }
notes: ["free credit is not deducted"]
components:
  - { component: creation, unit: creation, price: "0.0000006" }
  - { component: vcpu, unit: vcpu-second, price: "0.000014", minimum: 60s, increment: 1s }
  - { component: memory, unit: gib-second, price: "0.0000045", paused_price: "0.0000001" }
  - { component: disk, unit: disk-gib-month, price: "0.08", included: 1 }
  - { component: gpu, model: H100, unit: gpu-hour, confidence: unknown }
  - { component: gpu, unit: gpu-hour, price: "9.99", confidence: estimated, source: a blog }
  - { component: egress, unit: egress-gb, price: "0.15" }
  - { component: surcharge, unit: charged, price: "0.25", region: eu, label: region }
`

func readBook(t *testing.T, yaml string) Book {
	t.Helper()
	var b Book
	if _, err := strictyaml.DecodePositions("prices.yaml", []byte(yaml), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestABookReadsAsDocumented(t *testing.T) {
	t.Parallel()
	b := readBook(t, bookYAML)
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(b.Components) != 8 || b.Components[1].Minimum != "60s" || b.Defaults.CPU != "0.5" {
		t.Errorf("got %+v", b)
	}
}

func TestABookTellsEveryMistakeAndWhereItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, new, path, says string }{
		{"negative price", `"0.000014"`, `"-0.000014"`, "components.1.price", "negative"},
		{"overflowing price", `"0.000014"`, `"9223372.1"`, "components.1.price", "too large"},
		{"too fine a price", `"0.000014"`, `"0.0000000000001"`, "components.1.price", "decimals"},
		{"unknown unit", `vcpu-second`, `vcpu-day`, "components.1.unit", "unknown unit"},
		{"unit of another component", `unit: vcpu-second`, `unit: gib-second`, "components.1.unit", "is a unit of memory"},
		{"no price", `unit: vcpu-second, price: "0.000014"`, `unit: vcpu-second`, "components.1.price", "required"},
		{"price of unknown confidence", `confidence: unknown`, `confidence: unknown, price: "1"`, "components.4.price", "unknown"},
		{"negative minimum", `60s`, `-60s`, "components.1.minimum", "not positive"},
		{"finer than a millisecond", `1s`, `1us`, "components.1.increment", "millisecond"},
		{"negative included", `included: 1`, `included: -1`, "components.3.included", "negative"},
		{"overflowing included", `included: 1`, `included: 9000000000`, "components.3.included", "too large"},
		{"included creation", `price: "0.0000006"`, `price: "0.0000006", included: 1`, "components.0.included", "time and traffic"},
		{"negative paused price", `"0.0000001"`, `"-1"`, "components.2.paused_price", "negative"},
		{"priced twice", `gpu, unit`, `gpu, model: H100, unit`, "components.5.component", "twice"},
		{"model of no gpu", `disk, unit`, `disk, model: x, unit`, "components.3.model", "only a gpu"},
		{"minimum of traffic", `unit: egress-gb`, `unit: egress-gb, minimum: 1s`, "components.6.minimum", "not charged by time"},
		{"bad date", `as_of: "2026-08-22"`, `as_of: "22.08.2026"`, "as_of", "YYYY-MM-DD"},
		{"ends before it starts", `2027-02-22`, `2026-02-22`, "valid_until", "before"},
		{"no source", `source: https://e2b.dev/docs/billing`, `source: " "`, "source", "required"},
		{"newline in the source", `source: https://e2b.dev/docs/billing`, `source: "a\nb"`, "source", "control"},
		{"currency", `USD`, `usd`, "currency", "three upper-case"},
		{"confidence", `confidence: exact`, `confidence: sure`, "confidence", "not one of"},
		{"billing", `wall-clock`, `monthly`, "billing", "not one of"},
		{"idle", `storage-only`, `free`, "idle", "not one of"},
		{"fixed but idle free", `wall-clock`, `fixed`, "idle", "fixed"},
		{"time under invocation", `wall-clock`, `invocation`, "components.1.component", "charges no time"},
		{"minimum of active cpu", `wall-clock`, `active-cpu`, "components.1.component", "measured"},
		{"default cpu", `"0.5"`, `"half"`, "defaults", "decimal"},
		{"negative default", `memory_mb: 512`, `memory_mb: -512`, "defaults", "negative"},
		{"negative memory", `billing: wall-clock`, "billing: wall-clock\nmemory_mb_per_cpu: -1", "memory_mb_per_cpu", "negative"},
		{"extension", `ext.e2b`, `e2b`, "extension", "binding"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(bookYAML, c.old) {
				t.Fatalf("%q is not in the book", c.old)
			}
			b := readBook(t, strings.Replace(bookYAML, c.old, c.new, 1))
			err := b.Validate()
			if !extensions.IsKind(err, extensions.KindInvalid) {
				t.Fatalf("got %v", err)
			}
			for _, f := range FieldErrors(err) {
				if strings.Join(f.Path, ".") == c.path && strings.Contains(f.Err.Error(), c.says) {
					return
				}
			}
			t.Errorf("no mistake at %s that says %q in:\n%v", c.path, c.says, err)
		})
	}
}

func TestABookThatPricesNothingOfItsShapeIsRefused(t *testing.T) {
	t.Parallel()
	creation := BookPrice{Component: ComponentCreation, Unit: "creation", Price: "1"}
	for billing, components := range map[string][]BookPrice{
		extensions.BillingWallClock:  {creation},
		extensions.BillingFixed:      {creation},
		extensions.BillingActiveCPU:  {creation},
		extensions.BillingInvocation: {{Component: ComponentEgress, Unit: "egress-gb", Price: "1"}},
	} {
		for _, list := range [][]BookPrice{components, nil} {
			b := Book{ID: "prices.x", Extension: "ext.x", Version: "1", AsOf: "2026-01-02", Source: "s", Currency: "USD",
				Confidence: ConfidenceExact, Billing: billing, Components: list}
			var f *FieldError
			if err := b.Validate(); !errors.As(err, &f) || f.Path[0] != "components" {
				t.Errorf("%s with %d prices: %v", billing, len(list), err)
			}
		}
	}
}

func TestMistakesComeInTheSameOrderEveryTime(t *testing.T) {
	t.Parallel()
	b := Book{Components: []BookPrice{{Component: "x", Unit: "y", Model: "a\n", Region: "b\n", Label: "c\n:", Minimum: "1", Increment: "2",
		PausedPrice: "z"}}}
	first := b.Validate().Error()
	for range 50 {
		if again := b.Validate().Error(); again != first {
			t.Fatalf("first\n%s\nthen\n%s", first, again)
		}
	}
}

func TestStaleAndFutureBooksAreRefused(t *testing.T) {
	t.Parallel()
	day := func(s string) time.Time {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		asOf, until string
		now         time.Time
		fresh       bool
	}{
		{"2026-08-22", "", day("2026-08-22"), true},
		{"2026-08-22", "", day("2026-08-20"), false},                    // from the future
		{"2026-08-22", "", day("2026-08-21").Add(10 * time.Hour), true}, // on Kiritimati the day begins
		{"2026-08-22", "", day("2026-08-21").Add(10*time.Hour - time.Second), false},
		{"2026-08-22", "", day("2027-08-22"), true},
		{"2026-08-22", "", day("2027-08-24"), false},
		{"2026-08-22", "2026-09-01", day("2026-09-01").Add(23 * time.Hour), true},
		{"2026-08-22", "2026-09-01", day("2026-09-03"), false},
		{"2026-08-22", "2036-09-01", day("2035-09-03"), true},
		{"soon", "", day("2026-09-03"), false},
	} {
		b := Book{ID: "prices.x", AsOf: c.asOf, ValidUntil: c.until, Source: "the page"}
		if err := b.Fresh(c.now); (err == nil) != c.fresh {
			t.Errorf("as of %s until %q at %s: %v", c.asOf, c.until, c.now.Format(time.DateTime), err)
		}
	}
}
