package catalog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// narrowing is the capabilities section of a binding.
type narrowing struct {
	IsolationLevels    []string          `yaml:"isolation_levels"`
	PricingModel       *string           `yaml:"pricing_model"`
	Regions            []string          `yaml:"regions"`
	MaxConcurrent      *int64            `yaml:"max_concurrent"`
	MaxVCPU            *int64            `yaml:"max_vcpu"`
	MaxMemoryMB        *int64            `yaml:"max_memory_mb"`
	MaxTTL             *profile.Duration `yaml:"max_ttl"`
	Egress             *string           `yaml:"egress"`
	GPU                *bool             `yaml:"gpu"`
	ExtendTTL          *bool             `yaml:"extend_ttl"`
	MaxSessionDuration *profile.Duration `yaml:"max_session_duration"`
	SecretsAs          []string          `yaml:"secrets_as"`
}

// narrow applies the section key by key, so that a refusal has its place.
func (r *bindingReader) narrow(c extensions.Capabilities) extensions.Capabilities {
	n := r.in.Capabilities
	if n == nil {
		return c
	}
	egress := (*extensions.Egress)(r.known("egress", n.Egress, string(extensions.EgressNone), string(extensions.EgressDenyOnly),
		string(extensions.EgressCIDR), string(extensions.EgressDomain)))
	for _, step := range []struct {
		key string
		by  extensions.Narrowing
	}{
		{"isolation_levels", extensions.Narrowing{IsolationLevels: some(r, "isolation_levels", "an isolation level", extensions.IsolationLevels, n.IsolationLevels)}},
		{"pricing_model", extensions.Narrowing{PricingModel: r.known("pricing_model", n.PricingModel, extensions.PricingSelfHosted, extensions.PricingMetered)}},
		{"regions", extensions.Narrowing{Regions: n.Regions}},
		{"max_concurrent", extensions.Narrowing{MaxConcurrent: n.MaxConcurrent}},
		{"max_vcpu", extensions.Narrowing{MaxVCPU: n.MaxVCPU}},
		{"max_memory_mb", extensions.Narrowing{MaxMemoryMB: n.MaxMemoryMB}},
		{"max_ttl", extensions.Narrowing{MaxTTL: r.span("max_ttl", n.MaxTTL)}},
		{"max_session_duration", extensions.Narrowing{MaxSessionDuration: r.span("max_session_duration", n.MaxSessionDuration)}},
		{"egress", extensions.Narrowing{Egress: egress}},
		{"gpu", extensions.Narrowing{GPU: n.GPU}},
		{"extend_ttl", extensions.Narrowing{ExtendTTL: n.ExtendTTL}},
		{"secrets_as", extensions.Narrowing{SecretsAs: some(r, "secrets_as", "a delivery of secrets", extensions.SecretDeliveries, n.SecretsAs)}},
	} {
		narrower, err := c.Narrow(step.by)
		r.fail([]string{"capabilities", step.key}, err)
		if err == nil {
			c = narrower
		}
	}
	return c
}

// some keeps the order that capabilities are declared in, which is all's.
func some[S ~string](r *bindingReader, key, what string, all []S, names []string) []S {
	if names == nil {
		return nil
	}
	left := []S{}
	for i, name := range names {
		if !slices.Contains(all, S(name)) {
			e := r.refuse([]string{"capabilities", key, strconv.Itoa(i)}, "%q is not %s: want %s", extensions.Clean(name, 80), what, strings.Join(words(all), ", "))
			e.Suggestion = strictyaml.Nearest(name, words(all))
			continue
		}
		left = append(left, S(name))
	}
	if len(names) == 0 {
		r.refuse([]string{"capabilities", key}, "nothing is left: leave the key out or name at least one")
	}
	slices.SortFunc(left, func(a, b S) int { return slices.Index(all, a) - slices.Index(all, b) })
	return slices.Compact(left)
}

func words[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

func (r *bindingReader) known(key string, value *string, allowed ...string) *string {
	if value == nil || slices.Contains(allowed, *value) {
		return value
	}
	e := r.refuse([]string{"capabilities", key}, "%q is unknown: want %s", extensions.Clean(*value, 80), strings.Join(allowed, ", "))
	e.Suggestion = strictyaml.Nearest(*value, allowed)
	return nil
}

func (r *bindingReader) span(key string, d *profile.Duration) *time.Duration {
	if d != nil && *d <= 0 {
		r.refuse([]string{"capabilities", key}, "%s must be above zero", profile.FormatDuration(time.Duration(*d)))
		return nil
	}
	return (*time.Duration)(d)
}
