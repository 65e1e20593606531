package meter

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (b *Book) checkPrice(c *checker, p BookPrice) {
	u, ok := unitNamed(p.Unit)
	switch {
	case !ok:
		c.bad("unit", "unknown unit %q; known are %s", p.Unit, strings.Join(Units(), ", "))
	case u.component != p.Component:
		c.bad("unit", "%s is a unit of %s, not of %q", p.Unit, u.component, p.Component)
	}
	for _, f := range [][2]string{{"model", p.Model}, {"region", p.Region}, {"label", p.Label}, {"source", p.Source}} {
		c.text(f[0], f[1], false)
	}
	if p.Confidence != "" {
		c.oneOf("confidence", string(p.Confidence), string(ConfidenceExact), string(ConfidenceEstimated), string(ConfidenceUnknown))
	}
	b.checkNumbers(c, p, u)
	b.checkFit(c, p)
}

func (b *Book) checkNumbers(c *checker, p BookPrice, u unit) {
	unknown := b.confidenceOf(p) == ConfidenceUnknown
	switch {
	case unknown && p.Price != "":
		c.bad("price", "remove the price: an unknown one has no number")
	case !unknown && p.Price == "":
		c.bad("price", "it is required; for an unknown price, set confidence: unknown")
	case p.Price != "":
		if _, err := ParseUnitPrice(p.Price); err != nil {
			c.bad("price", "%w", err)
		}
	}
	if p.PausedPrice != "" {
		if _, err := ParseUnitPrice(p.PausedPrice); err != nil {
			c.bad("paused_price", "%w", err)
		}
	}
	for _, f := range [][2]string{{"minimum", p.Minimum}, {"increment", p.Increment}} {
		if _, err := wholeMillis(f[1]); err != nil {
			c.bad(f[0], "%w", err)
		}
	}
	if p.Included < 0 {
		c.bad("included", "%d is negative", p.Included)
	} else if _, err := mul(p.Included, u.perUnit); err != nil {
		c.bad("included", "%w", err)
	}
}

// checkFit refuses fields that have no meaning for the component or the shape.
func (b *Book) checkFit(c *checker, p BookPrice) {
	if p.Model != "" && p.Component != ComponentGPU {
		c.bad("model", "only a gpu has a model")
	}
	if p.Label != "" && p.Component != ComponentSurcharge {
		c.bad("label", "only a surcharge has a label")
	}
	if strings.Contains(p.Label+p.Model, ":") {
		c.bad("label", "a model or label has no colon")
	}
	if p.Included != 0 && (p.Component == ComponentSurcharge || p.Component == ComponentCreation) {
		c.bad("included", "only time and traffic can be included")
	}
	if !timed(p.Component) {
		for _, f := range [][2]string{{"paused_price", p.PausedPrice}, {"minimum", p.Minimum}, {"increment", p.Increment}} {
			if f[1] != "" {
				c.bad(f[0], "%s is not charged by time", p.Component)
			}
		}
	}
	switch {
	case p.Component == ComponentSnapshot: // kept whatever the shape of the billing of sandboxes
	case b.Billing == extensions.BillingInvocation && timed(p.Component):
		c.bad("component", "billing invocation charges no time, and %s is time", p.Component)
	case b.Billing == extensions.BillingActiveCPU && p.Component == ComponentVCPU && p.Minimum+p.Increment+p.PausedPrice != "":
		c.bad("component", "active CPU is measured: it has no minimum, no increment and no paused price")
	case b.Billing == extensions.BillingFixed && p.PausedPrice != "":
		c.bad("paused_price", "a fixed price is the same while paused")
	}
}

func (b *Book) confidenceOf(p BookPrice) Confidence {
	if p.Confidence != "" {
		return p.Confidence
	}
	return b.Confidence
}

// wholeMillis reads a positive Go duration of whole milliseconds; "" is 0.
func wholeMillis(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration such as 60s", extensions.Clean(s, 40))
	case d <= 0:
		return 0, fmt.Errorf("%s is not positive", s)
	case d%time.Millisecond != 0:
		return 0, errors.New("fractions of a millisecond are not billed")
	}
	return d.Milliseconds(), nil
}
