package extensions

import (
	"slices"
	"time"
)

// Narrowing takes capabilities away; nil fields change nothing. Catalogs, the
// declarations of bindings and the facts of places use it.
type Narrowing struct {
	OS                 []string         `json:"os,omitempty"`
	Arch               []string         `json:"arch,omitempty"`
	Regions            []string         `json:"regions,omitempty"`
	IsolationLevels    []Isolation      `json:"isolation_levels,omitzero"`
	SecretsAs          []SecretDelivery `json:"secrets_as,omitzero"`
	PricingModel       *string          `json:"pricing_model,omitempty"`
	Egress             *Egress          `json:"egress,omitempty"`
	CIDRPorts          *EgressPorts     `json:"cidr_ports,omitempty"`
	DomainPorts        *EgressPorts     `json:"domain_ports,omitempty"`
	DNS                *DNS             `json:"dns,omitempty"`
	Ingress            *Ingress         `json:"ingress,omitempty"`
	Expiry             *Expiry          `json:"expiry,omitempty"`
	PausedExpiry       *Expiry          `json:"paused_expiry,omitempty"`
	MaxConcurrent      *int64           `json:"max_concurrent,omitempty"`
	MaxVCPU            *int64           `json:"max_vcpu,omitempty"`
	MaxMemoryMB        *int64           `json:"max_memory_mb,omitempty"`
	MaxTTL             *time.Duration   `json:"max_ttl,omitempty"`
	MaxSessionDuration *time.Duration   `json:"max_session_duration,omitempty"`
	GPU                *bool            `json:"gpu,omitempty"`
	ExtendTTL          *Extend          `json:"extend_ttl,omitempty"`
	IdleReap           *IdleReap        `json:"idle_reap,omitempty"`
	ReadOnlyWorkspace  *bool            `json:"read_only_workspace,omitempty"`
	Limits             []Limit          `json:"limits,omitzero"`
	GPUModels          []string         `json:"gpu_models,omitzero"`
	Entrypoints        []EntrypointMode `json:"entrypoints,omitzero"`
}

// Narrow applies n. A wider value is KindInvalid with the field and its
// declaration.
func (c Capabilities) Narrow(n Narrowing) (Capabilities, error) {
	left, wider := c.narrow(n)
	if len(wider) > 0 {
		return c, wider[0]
	}
	return left, nil
}

// Within returns what both c and n allow: of a wider value, c's.
func (c Capabilities) Within(n Narrowing) Capabilities {
	left, _ := c.narrow(n)
	return left
}

// narrow returns what both allow, and an error for each value of n that is wider.
func (c Capabilities) narrow(n Narrowing) (left Capabilities, wider []error) {
	tell := func(err error) {
		if err != nil {
			wider = append(wider, err)
		}
	}
	tell(narrowSet("isolation_levels", &c.IsolationLevels, n.IsolationLevels))
	if n.PricingModel != nil && *n.PricingModel != c.PricingModel {
		if c.SelfHosted() || *n.PricingModel != PricingSelfHosted {
			tell(widens("pricing_model", *n.PricingModel, c.PricingModel))
		} else {
			c.PricingModel = *n.PricingModel // a vendor's software, run by its user
		}
	}
	tell(narrowSet("secrets_as", &c.SecretsAs, n.SecretsAs))
	tell(narrowSet("os", &c.OS, n.OS))
	tell(narrowSet("arch", &c.Arch, n.Arch))
	tell(narrowSet("regions", &c.Regions, n.Regions))
	tell(narrowCount("max_concurrent", &c.MaxConcurrent, n.MaxConcurrent))
	tell(narrowCount("max_vcpu", &c.MaxVCPU, n.MaxVCPU))
	tell(narrowCount("max_memory_mb", &c.MaxMemoryMB, n.MaxMemoryMB))
	tell(narrowSpan("max_ttl", &c.MaxTTL, n.MaxTTL))
	tell(narrowSpan("max_session_duration", &c.MaxSessionDuration, n.MaxSessionDuration))
	tell(narrowPart("egress", EgressLevels, &c.Egress, n.Egress))
	tell(narrowPart("cidr_ports", EgressPortSets, &c.CIDRPorts, n.CIDRPorts))
	tell(narrowPart("domain_ports", EgressPortSets, &c.DomainPorts, n.DomainPorts))
	tell(narrowLevel("dns", DNSLevels, &c.DNS, n.DNS))
	tell(narrowLevel("ingress", IngressLevels, &c.Ingress, n.Ingress))
	tell(narrowLevel("expiry", ExpiryLevels, &c.Expiry, n.Expiry))
	tell(narrowLevel("paused_expiry", ExpiryLevels, &c.PausedExpiry, n.PausedExpiry))
	if slices.Index(ExpiryLevels, c.PausedExpiry) > slices.Index(ExpiryLevels, c.Expiry) {
		c.PausedExpiry = c.Expiry
	}
	tell(narrowFlag("gpu", &c.GPU, n.GPU))
	tell(narrowLevel("extend_ttl", Extends, &c.ExtendTTL, n.ExtendTTL))
	tell(narrowLevel("idle_reap", IdleReaps, &c.IdleReap, n.IdleReap))
	tell(narrowFlag("read_only_workspace", &c.ReadOnlyWorkspace, n.ReadOnlyWorkspace))
	tell(narrowSet("entrypoints", &c.Entrypoints, n.Entrypoints))
	tell(narrowSet("limits", &c.Limits, n.Limits))
	if c.GPUModels == nil { // not known until somebody says
		c.GPUModels = n.GPUModels
	} else {
		tell(narrowSet("gpu_models", &c.GPUModels, n.GPUModels))
	}
	return c.agreedEgress(), wider
}

// agreedEgress returns c without the kinds of rules that its level or its ports lack.
func (c Capabilities) agreedEgress() Capabilities {
	for _, e := range []struct {
		level, other Egress
		ports        *EgressPorts
	}{{EgressCIDR, EgressDomainOnly, &c.CIDRPorts}, {EgressDomainOnly, EgressCIDR, &c.DomainPorts}} {
		if !c.Egress.Includes(e.level) {
			*e.ports = ""
		} else if *e.ports == "" {
			c.Egress = meet(EgressLevels, c.Egress, e.other)
		}
	}
	c.CustomNetworkPolicy = c.CustomNetworkPolicy && c.allowlists()
	return c
}

// allowlists reports whether c can allow something under default deny.
func (c Capabilities) allowlists() bool {
	return c.Egress.Includes(EgressCIDR) || c.Egress.Includes(EgressDomainOnly)
}

// narrowSet keeps of want what have has, in want's order; "*" has everything.
func narrowSet[T ~string](field string, have *[]T, want []T) (err error) {
	if want == nil {
		return nil
	}
	left := []T{}
	for _, w := range want {
		if slices.Contains(*have, "*") || slices.Contains(*have, w) {
			left = append(left, w)
		} else if err == nil {
			err = widens(field, w, *have)
		}
	}
	*have = left
	return err
}

func narrowCount(field string, have **int64, want *int64) error {
	switch {
	case want == nil:
	case *want < 0 || *have != nil && *want > **have:
		return widens(field, *want, *have)
	default:
		*have = want
	}
	return nil
}

func narrowSpan(field string, have, want *time.Duration) error {
	switch {
	case want == nil:
	case *want <= 0 || *have != 0 && *want > *have:
		return widens(field, *want, *have)
	default:
		*have = *want
	}
	return nil
}

func narrowLevel[T comparable](field string, levels []T, have, want *T) error {
	switch {
	case want == nil:
	case !slices.Contains(levels, *want) || slices.Index(levels, *want) > slices.Index(levels, *have):
		return widens(field, *want, *have)
	default:
		*have = *want
	}
	return nil
}

// part is a value that includes others, without an order of all.
type part[T any] interface {
	~string
	Includes(T) bool
}

// narrowPart leaves what both include; all lists every value, weaker ones first.
func narrowPart[T part[T]](field string, all []T, have, want *T) (err error) {
	if want == nil {
		return nil
	}
	if !slices.Contains(all, *want) {
		return widens(field, *want, *have)
	}
	if !(*have).Includes(*want) {
		err = widens(field, *want, *have)
	}
	*have = meet(all, *have, *want)
	return err
}

// meet returns the most of all that both include; "" if that is nothing.
func meet[T part[T]](all []T, a, b T) (most T) {
	for _, v := range all {
		if a.Includes(v) && b.Includes(v) {
			most = v
		}
	}
	return most
}

func narrowFlag(field string, have, want *bool) error {
	switch {
	case want == nil:
	case *want && !*have:
		return widens(field, true, false)
	default:
		*have = *want
	}
	return nil
}

func widens(field string, want, have any) error {
	if p, ok := have.(*int64); ok && p != nil {
		have = *p
	}
	return Errorf(KindInvalid, "capabilities.%s: %v is wider than what the extension declares (%v)", field, want, have).
		WithRemedy("a catalog may narrow capabilities, never widen them")
}
