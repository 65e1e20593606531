package catalog

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// shadowFile is what an own place counts at where it costs nothing.
type shadowFile struct {
	VCPUHour string `yaml:"vcpu_hour"`
	GiBHour  string `yaml:"gib_hour"`
	Source   string `yaml:"source"`
	AsOf     string `yaml:"as_of"`
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
	if b.Capabilities.PricingModel != extensions.PricingSelfHosted {
		r.refuse([]string{"shadow_price"}, "a metered place has prices of its own: a shadow price is for self-hosted ones")
	}
	price, err := meter.ParseShadowPrice(s.VCPUHour, s.GiBHour)
	r.fail([]string{"shadow_price"}, err)
	r.dated("shadow_price", s.Source, s.AsOf)
	b.Shadow = &price
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
		r.refuse([]string{"latency", "create_to_ready"}, "%s must be above zero", profile.FormatDuration(time.Duration(*l.CreateToReady)))
	default:
		b.CreateToReady = time.Duration(*l.CreateToReady)
	}
	r.dated("latency", l.Source, l.AsOf)
}

// dated asks where a figure is from, and when it was looked at: figures age.
func (r *bindingReader) dated(section, source, asOf string) {
	if source == "" {
		r.refuse([]string{section}, "%s.source is required: where the figure is from", section)
	}
	if _, err := time.Parse(time.DateOnly, asOf); err != nil {
		r.refuse([]string{section, "as_of"}, "%q is not a date: want YYYY-MM-DD", extensions.Clean(asOf, 80))
	}
}
