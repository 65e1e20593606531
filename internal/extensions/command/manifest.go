package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// manifest is what a program declares. A word that is left out declares the least there is.
type manifest struct {
	Contract        int                     `json:"contract"` // wireVersion
	Powers          []extensions.Power      `json:"powers"`
	IsolationLevels []extensions.Isolation  `json:"isolation_levels"` // weakest first; at least one
	Find            extensions.FindStrength `json:"find"`             // default none
	Settle          extensions.Duration     `json:"settle"`           // of an eventual find
	Claim           extensions.Duration     `json:"claim"`            // of an eventual find with native expiry and the power extend
	ListLag         extensions.Duration     `json:"list_lag"`         // 0 = a list is as of now
	Expiry          extensions.Expiry       `json:"expiry"`           // default sweep
	ExtendTTL       extensions.Extend       `json:"extend_ttl"`       // with the power extend only; default both
	MaxTTL          extensions.Duration     `json:"max_ttl"`          // 0 = no limit
	MaxConcurrent   *int64                  `json:"max_concurrent"`
	MaxVCPU         *int64                  `json:"max_vcpu"`
	MaxMemoryMB     *int64                  `json:"max_memory_mb"`
	Limits          []extensions.Limit      `json:"limits"` // those that hold
	Egress          extensions.Egress       `json:"egress"` // default none
	CIDRPorts       extensions.EgressPorts  `json:"cidr_ports"`
	DomainPorts     extensions.EgressPorts  `json:"domain_ports"`
	DNS             extensions.DNS          `json:"dns"`     // default open
	Ingress         extensions.Ingress      `json:"ingress"` // default public
	PricingModel    string                  `json:"pricing_model"`
	OS              []string                `json:"os"`   // default linux
	Arch            []string                `json:"arch"` // default any
	Regions         []string                `json:"regions"`
}

// parseManifest reads the manifest of a binding, strictly.
func parseManifest(value any) (m manifest, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return m, invalidManifest("it is not JSON: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	m = manifest{Find: extensions.FindNone, Expiry: extensions.ExpirySweep, Egress: extensions.EgressNone, DNS: extensions.DNSOpen,
		Ingress: extensions.IngressPublic, PricingModel: extensions.PricingSelfHosted, OS: []string{"linux"}, Limits: []extensions.Limit{}}
	if err := dec.Decode(&m); err != nil {
		return m, invalidManifest("%w", err)
	}
	has := func(p extensions.Power) bool { return slices.Contains(m.Powers, p) }
	for _, p := range m.Powers {
		if !slices.Contains(powers, p) {
			return m, invalidManifest("the power %q is not one of %v", p, powers)
		}
	}
	if has(extensions.PowerExtend) && m.ExtendTTL == "" {
		m.ExtendTTL = extensions.ExtendBoth
	}
	switch {
	case m.Contract != wireVersion:
		return m, invalidManifest("contract is %d, and this is %d", m.Contract, wireVersion)
	case len(m.IsolationLevels) == 0:
		return m, invalidManifest("isolation_levels is missing: say at least one of %v", extensions.IsolationLevels)
	case has(extensions.PowerFiles) && !has(extensions.PowerExec):
		return m, invalidManifest("the power files goes through exec, which is not declared")
	case has(extensions.PowerExtend) == (m.ExtendTTL == "" || m.ExtendTTL == extensions.ExtendNone):
		return m, invalidManifest("extend_ttl %q and the power extend disagree", m.ExtendTTL)
	}
	return m, nil
}

func invalidManifest(format string, args ...any) *extensions.Error {
	return extensions.Errorf(extensions.KindInvalid, "config.manifest: %w", fmt.Errorf(format, args...)).
		WithRemedy("the guide Write an extension lists what a manifest can say")
}

// declaration is m in the contract's words.
func (m manifest) declaration() extensions.Declaration {
	list := extensions.List{Freshness: extensions.ListStrong}
	if m.ListLag != 0 {
		list = extensions.List{Freshness: extensions.ListEventual, Lag: time.Duration(m.ListLag)}
	}
	extend := m.ExtendTTL
	if extend == "" {
		extend = extensions.ExtendNone
	}
	n := extensions.Narrowing{OS: m.OS, Arch: m.Arch, Regions: m.Regions, IsolationLevels: m.IsolationLevels, PricingModel: &m.PricingModel,
		Egress: &m.Egress, DNS: &m.DNS, Ingress: &m.Ingress, Expiry: &m.Expiry, MaxConcurrent: m.MaxConcurrent, MaxVCPU: m.MaxVCPU,
		MaxMemoryMB: m.MaxMemoryMB, ExtendTTL: &extend, Limits: m.Limits}
	if m.CIDRPorts != "" {
		n.CIDRPorts = &m.CIDRPorts
	}
	if m.DomainPorts != "" {
		n.DomainPorts = &m.DomainPorts
	}
	if m.MaxTTL != 0 {
		most := time.Duration(m.MaxTTL)
		n.MaxTTL = &most
	}
	declared := slices.Clone(m.Powers)
	if declared == nil {
		declared = []extensions.Power{}
	}
	return extensions.Declaration{Narrowing: n, Powers: declared, List: &list,
		Find: &extensions.Find{Strength: m.Find, Settle: time.Duration(m.Settle), Claim: time.Duration(m.Claim)}}
}
