package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func vendorBook(t *testing.T, handler string) *meter.Book {
	t.Helper()
	c, err := catalog.Load(nil, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Books, func(b meter.Book) bool { return b.Handler == handler })
	if i < 0 {
		return nil
	}
	return &c.Books[i]
}

func size(cpu extensions.Milli, memory int64, gpu string) extensions.Resources {
	r := extensions.Resources{CPU: &cpu, MemoryMB: &memory}
	if gpu != "" {
		r.GPU = &extensions.GPU{Model: gpu, Count: 1}
	}
	return r
}

// The hourly prices are worked out by hand from what the vendors say.
func TestTheBuiltInPriceListsGiveTheVendorsOwnExamples(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler, region  string
		size             extensions.Resources
		hourly, creation string
		confidence       meter.Confidence
	}{
		"e2b: 8 x 0.0504 + 4 x 0.0162":           {"e2b", "", size(8000, 4096, ""), "0.468", "0.00", meter.ConfidenceExact},
		"e2b: its default, 2 x 0.0504 + 0.0081":  {"e2b", "", extensions.Resources{}, "0.1089", "0.00", meter.ConfidenceExact},
		"modal: a core is two vCPU":              {"modal", "", size(2000, 1024, ""), "0.166104", "0.00", meter.ConfidenceEstimated},
		"modal: with a T4":                       {"modal", "", size(2000, 1024, "T4"), "0.756104", "0.00", meter.ConfidenceEstimated},
		"modal: in a region, 1.75 times":         {"modal", "eu", size(2000, 1024, ""), "0.290682", "0.00", meter.ConfidenceEstimated},
		"modal: a model without a known price":   {"modal", "", size(2000, 1024, "A100"), "unknown", "0.00", meter.ConfidenceUnknown},
		"daytona: its default":                   {"daytona", "", extensions.Resources{}, "0.066924", "0.00", meter.ConfidenceEstimated},
		"daytona: GPUs have a price, not known":  {"daytona", "", size(1000, 1024, "H100"), "unknown", "0.00", meter.ConfidenceUnknown},
		"vercel: 2 x 0.128 + 4 x 0.0212":         {"vercel", "", size(2000, 4096, ""), "0.3408", "0.0000006", meter.ConfidenceExact},
		"vercel: 4 GiB come with 2 vCPU":         {"vercel", "", size(2000, 512, ""), "0.3408", "0.0000006", meter.ConfidenceExact},
		"vercel: its default, 2 vCPU with 4 GiB": {"vercel", "", extensions.Resources{}, "0.3408", "0.0000006", meter.ConfidenceExact},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := vendorBook(t, c.handler)
			if book == nil {
				t.Fatalf("there is no price list of %s", c.handler)
			}
			if err := book.Fresh(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)); err != nil {
				t.Error(err)
			}
			q, err := meter.NewQuote(meter.QuoteInput{Extension: "ext.x", PricingModel: extensions.PricingMetered, Region: c.region,
				Book: book, Resources: c.size, TTL: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(q.Hourly); got != c.hourly {
				t.Errorf("an hour is %s, want %s; unknown: %q", got, c.hourly, q.Unknowns)
			}
			if got := shown(q.PerCreation); got != c.creation {
				t.Errorf("a creation is %s, want %s", got, c.creation)
			}
			for _, l := range q.Lines {
				if l.Confidence == meter.ConfidenceUnknown && c.hourly != "unknown" {
					t.Errorf("%s is not known", l.Component)
				}
				if l.Source == "" || l.AsOf != book.AsOf {
					t.Errorf("%s has no provenance: %+v", l.Component, l)
				}
			}
			if q.Confidence != c.confidence {
				t.Errorf("confidence %s, want %s", q.Confidence, c.confidence)
			}
		})
	}
}

func shown(a *meter.Amount) string {
	if a == nil {
		return "unknown"
	}
	return a.String()
}

// OpenShell and Kubernetes run on machines of the user: nobody sells them.
func TestWhatNobodySellsHasNoPriceList(t *testing.T) {
	t.Parallel()
	for _, handler := range []string{"openshell", "kubernetes", "agent-sandbox", "compose-ssh", "local"} {
		if b := vendorBook(t, handler); b != nil {
			t.Errorf("%s has the price list %s", handler, b.ID)
		}
	}
}

const handlerBook = `
id: prices.vendor
handler: saas-stub
version: "1"
as_of: "2026-01-01"
source: a test
currency: USD
confidence: exact
billing: wall-clock
components:
  - { component: sandbox, unit: sandbox-hour, price: "0.50" }
`

func TestABookOfAHandlerPricesItsMeteredBindingsThatHaveNoPriceOfTheirOwn(t *testing.T) {
	t.Parallel()
	own := strings.NewReplacer("prices.vendor", "prices.own", "handler: saas-stub", "extension: ext.own").Replace(handlerBook)
	dir := folder(t, map[string]string{
		"prices/vendor.yaml":     handlerBook,
		"prices/own.yaml":        own,
		"extensions/plain.yaml":  "id: ext.plain\nhandler: saas-stub\n",
		"extensions/own.yaml":    "id: ext.own\nhandler: saas-stub\n",
		"extensions/stated.yaml": "id: ext.stated\nhandler: saas-stub\ncost: { per_hour: \"0.10 USD\" }\n",
	})
	c, err := catalog.Load([]string{dir}, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	for binding, want := range map[string]string{"ext.plain": "prices.vendor", "ext.own": "prices.own", "ext.saas-stub": "prices.saas-stub",
		"ext.stated": "", "ext.local": "", "ext.none": ""} {
		got := ""
		if b := c.Book(binding); b != nil {
			got = b.ID
		}
		if got != want {
			t.Errorf("%s is priced by %q, want %q", binding, got, want)
		}
	}
	if where := c.Book("ext.plain").Where; !strings.HasSuffix(where, "prices/vendor.yaml:5") {
		t.Errorf("the book says it stands at %s", where)
	}
}

func TestABookMayTakeTheIdOfABuiltInOne(t *testing.T) {
	t.Parallel()
	mine := strings.NewReplacer("prices.vendor", "prices.e2b", "handler: saas-stub", "extension: ext.saas-stub").Replace(handlerBook)
	c, err := catalog.Load([]string{folder(t, map[string]string{"prices/e2b.yaml": mine})}, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	if b := c.Book("ext.saas-stub"); b == nil || b.ID != "prices.e2b" {
		t.Errorf("priced by %+v", b)
	}
	if slices.ContainsFunc(c.Books, func(b meter.Book) bool { return b.Handler == "e2b" }) {
		t.Error("the replaced one is still there")
	}
}

func TestTheTimesOfABookMayHaveDays(t *testing.T) {
	t.Parallel()
	timed := func(minimum string) string {
		return strings.Replace(handlerBook, `price: "0.50" }`, `price: "0.50", minimum: `+minimum+`, increment: 1d12h }`, 1)
	}
	c, err := catalog.Load([]string{folder(t, map[string]string{"prices/a.yaml": timed("2d")})}, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Books, func(b meter.Book) bool { return b.ID == "prices.vendor" })
	q, err := meter.NewQuote(meter.QuoteInput{Extension: "ext.plain", PricingModel: extensions.PricingMetered, Book: &c.Books[i],
		TTL: time.Hour})
	if err != nil || shown(q.Max) != "24.00" { // max(48 h, one step of 36 h) at 0.50
		t.Errorf("two days at least, in steps of a day and a half, cost %s, %v", shown(q.Max), err)
	}
	for _, bad := range []string{"-1d", "1d-2h", "0d", "d", "1.5d"} {
		if _, err := catalog.Load([]string{folder(t, map[string]string{"prices/a.yaml": timed(bad)})}, handlers(), today); err == nil ||
			!strings.Contains(err.Error(), "a.yaml:11") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
