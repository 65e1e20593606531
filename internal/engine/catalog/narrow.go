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
		{"isolation_levels", extensions.Narrowing{IsolationLevels: r.levels(n.IsolationLevels)}},
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
	} {
		narrower, err := c.Narrow(step.by)
		r.fail([]string{"capabilities", step.key}, err)
		if err == nil {
			c = narrower
		}
	}
	return c
}

// levels keeps the order of strength that capabilities are declared in.
func (r *bindingReader) levels(names []string) []extensions.Isolation {
	if names == nil {
		return nil
	}
	levels := []extensions.Isolation{}
	for i, name := range names {
		level := extensions.Isolation(name)
		if !slices.Contains(extensions.IsolationLevels, level) {
			all := isolationNames()
			e := r.refuse([]string{"capabilities", "isolation_levels", strconv.Itoa(i)}, "%q is not an isolation level: want %s",
				extensions.Clean(name, 80), strings.Join(all, ", "))
			e.Suggestion = strictyaml.Nearest(name, all)
			continue
		}
		levels = append(levels, level)
	}
	if len(names) == 0 {
		r.refuse([]string{"capabilities", "isolation_levels"}, "no level is left: leave the key out or name at least one")
	}
	slices.SortFunc(levels, func(a, b extensions.Isolation) int {
		return slices.Index(extensions.IsolationLevels, a) - slices.Index(extensions.IsolationLevels, b)
	})
	return slices.Compact(levels)
}

func isolationNames() []string {
	names := make([]string, len(extensions.IsolationLevels))
	for i, l := range extensions.IsolationLevels {
		names[i] = string(l)
	}
	return names
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
