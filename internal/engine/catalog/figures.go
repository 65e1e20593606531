package catalog

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// shadowFile is the price used to compare an own place that costs nothing.
type shadowFile struct {
	VCPUHour string `yaml:"vcpu_hour"`
	GiBHour  string `yaml:"gib_hour"`
	Source   string `yaml:"source"`
	AsOf     string `yaml:"as_of"`
	// Confidence defaults to "estimated".
	Confidence *string `yaml:"confidence"`
}

// feeFile is what the platform charges.
type feeFile struct {
	Share       string  `yaml:"share"`
	PerHour     string  `yaml:"per_hour"`
	PerCreation string  `yaml:"per_creation"`
	Billing     *string `yaml:"billing"`
	Source      string  `yaml:"source"`
}

// latencyFile is how long a place takes until there is history.
type latencyFile struct {
	CreateToReady *profile.Duration `yaml:"create_to_ready"`
	Source        string            `yaml:"source"`
	AsOf          string            `yaml:"as_of"`
}

func (r *bindingReader) shadow(b *Binding) {
	s := r.in.ShadowPrice
	if s == nil {
		return
	}
	if !b.Capabilities.SelfHosted() {
		r.refuse([]string{"shadow_price"}, "a metered place has its own prices: a shadow price applies to self-hosted ones")
	}
	price, err := meter.ParseShadowPrice(s.VCPUHour, s.GiBHour)
	r.fail([]string{"shadow_price"}, err)
	r.dated("shadow_price", s.Source, s.AsOf)
	price.Source, price.AsOf, price.Confidence = s.Source, s.AsOf, meter.ConfidenceEstimated
	if s.Confidence != nil {
		r.oneOf([]string{"shadow_price", "confidence"}, *s.Confidence, string(meter.ConfidenceExact), string(meter.ConfidenceEstimated))
		price.Confidence = meter.Confidence(*s.Confidence)
	}
	b.Shadow = &price
}

func (r *bindingReader) fee(b *Binding) {
	f := r.in.Fee
	if f == nil {
		return
	}
	if b.Capabilities.SelfHosted() {
		r.refuse([]string{"fee"}, "a place of your own charges nothing: a fee applies to metered ones")
	} else if r.in.Billing == nil { // without it, the fee might go unpaid
		r.refuse([]string{"fee"}, "a binding with a fee must set who pays the vendor: add billing: %s or billing: %s beside it",
			route.BillingPlatform, route.BillingBYOK)
	}
	fee := meter.Fee{Share: f.Share, PerHour: f.PerHour, PerCreation: f.PerCreation, BYOK: true, Platform: true, Source: f.Source}
	if f.Billing != nil {
		r.oneOf([]string{"fee", "billing"}, *f.Billing, route.BillingPlatform, route.BillingBYOK)
		fee.BYOK, fee.Platform = *f.Billing == route.BillingBYOK, *f.Billing == route.BillingPlatform
		if of := r.in.Billing; of != nil && (fee.BYOK && *of == route.BillingPlatform || fee.Platform && *of == route.BillingBYOK) {
			r.refuse([]string{"fee", "billing"}, "the fee would never apply: the binding has billing: %s; set the same here, or remove it", *of)
		}
	}
	if field, err := fee.Check(); err != nil {
		path := []string{"fee"}
		if field != "" {
			path = append(path, field)
		}
		r.fail(path, err)
	}
	b.Fee = &fee
}

func (r *bindingReader) latency(b *Binding) {
	l := r.in.Latency
	if l == nil {
		return
	}
	switch {
	case l.CreateToReady == nil:
		r.refuse([]string{"latency"}, "latency.create_to_ready is required, as in 8s")
	case *l.CreateToReady <= 0:
		r.refuse([]string{"latency", "create_to_ready"}, "%s must be positive", profile.FormatDuration(time.Duration(*l.CreateToReady)))
	default:
		b.CreateToReady = time.Duration(*l.CreateToReady)
	}
	r.dated("latency", l.Source, l.AsOf)
}

// dated requires a figure's source and the date it was read: figures age.
func (r *bindingReader) dated(section, source, asOf string) {
	if source == "" {
		r.refuse([]string{section}, "%s.source is required: the source of the figure", section)
	}
	r.date(section, asOf)
}

// ahead is the mistake of a date in the future.
const ahead = "%s is in the future: correct it, or this machine's clock"

// date checks a section's as_of.
func (r *bindingReader) date(section, asOf string) {
	path := []string{section, "as_of"}
	switch day, err := time.Parse(time.DateOnly, asOf); {
	case err != nil:
		r.refuse(path, "%q is not a date: want YYYY-MM-DD", extensions.Clean(asOf, 80))
	case !r.builtin && meter.Ahead(day, r.now):
		r.refuse(path, ahead, asOf)
	}
}
