package extensions_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/composessh"
)

func TestNamesAndNetworksAreToldApart(t *testing.T) {
	t.Parallel()
	name, network := extensions.EgressRule{Domain: "example.org", Port: 443}, extensions.EgressRule{CIDR: "10.0.0.0/8"}
	for want, rules := range map[extensions.Egress][]extensions.EgressRule{
		extensions.EgressDenyOnly: nil, extensions.EgressCIDR: {network, network}, extensions.EgressDomainOnly: {name},
		extensions.EgressDomain: {name, network, name},
	} {
		need := extensions.Network{Default: "deny", Egress: rules}.Needs()
		if need != want {
			t.Errorf("%v needs %q, want %q", rules, need, want)
		}
		for _, have := range extensions.EgressLevels {
			enough := have == want || have == extensions.EgressDomain || want == extensions.EgressDenyOnly && have != extensions.EgressNone
			if have.Includes(need) != enough {
				t.Errorf("%q includes %q: %t", have, need, !enough)
			}
		}
	}
	if extensions.Egress("").Includes(extensions.EgressNone) || extensions.EgressDomain.Includes("") {
		t.Error("an unknown level includes something, or is included")
	}
}

func TestAllowlistsNarrowByKindAndByPort(t *testing.T) {
	t.Parallel()
	whole := composessh.New().Describe().Capabilities
	https := extensions.Narrowing{DomainPorts: to(extensions.PortsHTTPS)}
	for name, x := range map[string]struct {
		steps  []extensions.Narrowing
		egress extensions.Egress // "" = the last step is wider
		cidr   extensions.EgressPorts
		domain extensions.EgressPorts
	}{
		"names alone":     {[]extensions.Narrowing{{Egress: to(extensions.EgressDomainOnly)}}, extensions.EgressDomainOnly, "", extensions.PortsAny},
		"networks alone":  {[]extensions.Narrowing{{Egress: to(extensions.EgressCIDR)}}, extensions.EgressCIDR, extensions.PortsAny, ""},
		"443 for names":   {[]extensions.Narrowing{https}, extensions.EgressDomain, extensions.PortsAny, extensions.PortsHTTPS},
		"a named port":    {[]extensions.Narrowing{{DomainPorts: to(extensions.PortsOne)}, https}, extensions.EgressDomain, extensions.PortsAny, extensions.PortsHTTPS},
		"443, then any":   {[]extensions.Narrowing{https, {DomainPorts: to(extensions.PortsOne)}}, "", "", ""},
		"and any again":   {[]extensions.Narrowing{https, {DomainPorts: to(extensions.PortsAny)}}, "", "", ""},
		"and none":        {[]extensions.Narrowing{https, {DomainPorts: to(extensions.PortsNone)}}, "", "", ""},
		"of no names":     {[]extensions.Narrowing{{Egress: to(extensions.EgressCIDR)}, https}, "", "", ""},
		"names, networks": {[]extensions.Narrowing{{Egress: to(extensions.EgressDomainOnly)}, {Egress: to(extensions.EgressCIDR)}}, "", "", ""},
		"shut":            {[]extensions.Narrowing{{DNS: to(extensions.DNSOpen)}, {DNS: to(extensions.DNSAllowlist)}}, "", "", ""},
		"unknown":         {[]extensions.Narrowing{{Egress: to(extensions.Egress("all"))}}, "", "", ""},
	} {
		c, err := whole, error(nil)
		for _, n := range x.steps {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c, err = c.Narrow(n)
		}
		if (err != nil) != (x.egress == "") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (c.Egress != x.egress || c.CIDRPorts != x.cidr || c.DomainPorts != x.domain || !c.CustomNetworkPolicy) {
			t.Errorf("%s leaves %q, %q and %q", name, c.Egress, c.CIDRPorts, c.DomainPorts)
		}
	}
	both := whole.Within(https).Within(extensions.Narrowing{DomainPorts: to(extensions.PortsNone)})
	if both.Egress != extensions.EgressCIDR || both.DomainPorts != "" {
		t.Errorf("443 only and no port together leave %q with ports %q of names", both.Egress, both.DomainPorts)
	}
	odd := whole.Within(extensions.Narrowing{Egress: to(extensions.Egress("all"))})
	if odd.Egress != extensions.EgressDomain {
		t.Errorf("an unknown fact leaves %q", odd.Egress)
	}
}

func TestAPortThatCannotBeNamedIsRefusedWithWhatToWrite(t *testing.T) {
	t.Parallel()
	c := composessh.New().Describe().Capabilities
	c.DomainPorts, c.CIDRPorts = extensions.PortsHTTPS, extensions.PortsNone
	n := extensions.Network{Default: "deny", Egress: []extensions.EgressRule{{Domain: "example.org", Port: 443}, {Domain: "example.org", Port: 22},
		{Domain: "*.example.org"}, {CIDR: "10.0.0.0/8"}, {CIDR: "2001:db8::/32", Port: 443}}}
	err := c.CheckEgress(n)
	if !extensions.IsKind(err, extensions.KindUnsupported) ||
		!strings.Contains(err.Error(), "example.org:22, *.example.org:*, [2001:db8::]/32:443") ||
		!strings.Contains(extensions.RemedyOf(err), "*.example.org:443, [2001:db8::]/32:*, example.org:443") {
		t.Errorf("%v; %s", err, extensions.RemedyOf(err))
	}
	n.Egress = []extensions.EgressRule{{Domain: "example.org", Port: 443}, {CIDR: "10.0.0.0/8"}}
	if err := c.CheckEgress(n); err != nil {
		t.Error(err)
	}
	c.CIDRPorts = extensions.PortsOne
	if err := c.CheckEgress(n); !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), "10.0.0.0/8:*") ||
		!strings.Contains(extensions.RemedyOf(err), "10.0.0.0/8:443") {
		t.Errorf("%v; %s", err, extensions.RemedyOf(err))
	}
	c.Egress = extensions.EgressDenyOnly
	if err := c.CheckEgress(n); !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
		t.Error(err)
	}
}
