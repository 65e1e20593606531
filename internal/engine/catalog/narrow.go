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
	CIDRPorts          *string           `yaml:"cidr_ports"`
	DomainPorts        *string           `yaml:"domain_ports"`
	DNS                *string           `yaml:"dns"`
	Ingress            *string           `yaml:"ingress"`
	GPU                *bool             `yaml:"gpu"`
	ExtendTTL          *string           `yaml:"extend_ttl"`
	IdleReap           *string           `yaml:"idle_reap"`
	MaxSessionDuration *profile.Duration `yaml:"max_session_duration"`
	SecretsAs          []string          `yaml:"secrets_as"`
	Entrypoints        []string          `yaml:"entrypoints"`
}

// narrow applies the section key by key, so that a refusal has its position.
func (r *bindingReader) narrow(c extensions.Capabilities) extensions.Capabilities {
	n := r.in.Capabilities
	if n == nil {
		return c
	}
	for _, step := range []struct {
		key string
		by  extensions.Narrowing
	}{
		{"isolation_levels", extensions.Narrowing{IsolationLevels: some(r, "isolation_levels", "an isolation level", extensions.IsolationLevels,
			n.IsolationLevels)}},
		{"pricing_model", extensions.Narrowing{PricingModel: known(r, "pricing_model", n.PricingModel,
			[]string{extensions.PricingSelfHosted, extensions.PricingMetered})}},
		{"regions", extensions.Narrowing{Regions: n.Regions}},
		{"max_concurrent", extensions.Narrowing{MaxConcurrent: n.MaxConcurrent}},
		{"max_vcpu", extensions.Narrowing{MaxVCPU: n.MaxVCPU}},
		{"max_memory_mb", extensions.Narrowing{MaxMemoryMB: n.MaxMemoryMB}},
		{"max_ttl", extensions.Narrowing{MaxTTL: r.span("max_ttl", n.MaxTTL)}},
		{"max_session_duration", extensions.Narrowing{MaxSessionDuration: r.span("max_session_duration", n.MaxSessionDuration)}},
		{"egress", extensions.Narrowing{Egress: known(r, "egress", n.Egress, extensions.EgressLevels)}},
		{"cidr_ports", extensions.Narrowing{CIDRPorts: known(r, "cidr_ports", n.CIDRPorts, extensions.EgressPortSets)}},
		{"domain_ports", extensions.Narrowing{DomainPorts: known(r, "domain_ports", n.DomainPorts, extensions.EgressPortSets)}},
		{"dns", extensions.Narrowing{DNS: known(r, "dns", n.DNS, extensions.DNSLevels)}},
		{"ingress", extensions.Narrowing{Ingress: known(r, "ingress", n.Ingress, extensions.IngressLevels)}},
		{"gpu", extensions.Narrowing{GPU: n.GPU}},
		{"extend_ttl", extensions.Narrowing{ExtendTTL: known(r, "extend_ttl", n.ExtendTTL, extensions.Extends)}},
		{"idle_reap", extensions.Narrowing{IdleReap: known(r, "idle_reap", n.IdleReap, extensions.IdleReaps)}},
		{"entrypoints", extensions.Narrowing{Entrypoints: some(r, "entrypoints", "an entrypoint", extensions.EntrypointModes, n.Entrypoints)}},
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

// some returns names in the order of all, in which capabilities are declared.
func some[S ~string](r *bindingReader, key, what string, all []S, names []string) []S {
	if names == nil {
		return nil
	}
	left := []S{}
	for i, name := range names {
		if !slices.Contains(all, S(name)) {
			e := r.refuse([]string{"capabilities", key, strconv.Itoa(i)}, "%q is not %s: want %s", extensions.Clean(name, 80), what,
				strings.Join(words(all), ", "))
			e.Suggestion = strictyaml.Nearest(name, words(all))
			continue
		}
		left = append(left, S(name))
	}
	if len(names) == 0 {
		r.refuse([]string{"capabilities", key}, "the list is empty: remove the key or list at least one")
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

func known[S ~string](r *bindingReader, key string, value *string, allowed []S) *S {
	if value == nil {
		return nil
	}
	if word := S(*value); slices.Contains(allowed, word) {
		return &word
	}
	e := r.refuse([]string{"capabilities", key}, "%q is unknown: want %s", extensions.Clean(*value, 80), strings.Join(words(allowed), ", "))
	e.Suggestion = strictyaml.Nearest(*value, words(allowed))
	return nil
}

func (r *bindingReader) span(key string, d *profile.Duration) *time.Duration {
	if d != nil && *d <= 0 {
		r.refuse([]string{"capabilities", key}, "%s must be positive", profile.FormatDuration(time.Duration(*d)))
		return nil
	}
	return (*time.Duration)(d)
}
