package extensions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Egress is the part of an egress policy that a place enforces.
type Egress string

const (
	EgressNone       Egress = "none"        // nothing: only default allow is honest
	EgressDenyOnly   Egress = "deny-only"   // all or nothing
	EgressCIDR       Egress = "cidr"        // deny with allowed networks
	EgressDomainOnly Egress = "domain-only" // deny with allowed names
	EgressDomain     Egress = "domain"      // deny with allowed networks and names
)

// EgressLevels lists every value; none includes a later one.
var EgressLevels = []Egress{EgressNone, EgressDenyOnly, EgressCIDR, EgressDomainOnly, EgressDomain}

// Includes reports whether e enforces at least want.
func (e Egress) Includes(want Egress) bool {
	have, need := slices.Index(EgressLevels, e), slices.Index(EgressLevels, want)
	return need >= 0 && have >= need && !(e == EgressDomainOnly && want == EgressCIDR)
}

// EgressPorts is the set of ports that a rule of an allowlist can name.
type EgressPorts string

const (
	PortsAny   EgressPorts = "any"   // one port, or every port
	PortsOne   EgressPorts = "one"   // one port, which must be named
	PortsHTTPS EgressPorts = "https" // 443 only
	PortsNone  EgressPorts = "none"  // every port only: no single one can be named
)

// EgressPortSets lists every value.
var EgressPortSets = []EgressPorts{PortsNone, PortsHTTPS, PortsOne, PortsAny}

// Includes reports whether p can name every port that want can.
func (p EgressPorts) Includes(want EgressPorts) bool {
	return want == p || want == "" || p == PortsAny || p == PortsOne && want == PortsHTTPS
}

// names reports whether a rule can have this port; 0 is every port.
func (p EgressPorts) names(port int) bool {
	return p == PortsAny || p == PortsOne && port != 0 || p == PortsHTTPS && port == 443 || p == PortsNone && port == 0
}

// DNS says when a place resolves any name despite default deny, so data can leak
// through DNS queries. Names on an allowlist do not count.
type DNS string

const (
	DNSOpen      DNS = "open"      // always
	DNSAllowlist DNS = "allowlist" // beside an allowlist of networks or names
	DNSClosed    DNS = "closed"    // never
)

// DNSLevels lists every value, weakest first.
var DNSLevels = []DNS{DNSOpen, DNSAllowlist, DNSClosed}

// OpenUnder reports whether any name can be looked up under n.
func (d DNS) OpenUnder(n Network) bool {
	return n.Needs() != EgressNone && (d == DNSOpen || d == DNSAllowlist && len(n.Egress) > 0)
}

// Ingress says who can reach a port inside under default deny. An adapter closes all
// ports that the place can close. Ports that sandboxer forwards for its user do not
// count.
type Ingress string

const (
	IngressPublic Ingress = "public" // anybody who knows the address
	IngressClosed Ingress = "closed" // nobody without a secret
)

// IngressLevels lists every value, weakest first.
var IngressLevels = []Ingress{IngressPublic, IngressClosed}

// ports returns what a rule of r's kind can name as its port; "" = there are no such
// rules.
func (c Capabilities) ports(r EgressRule) EgressPorts {
	if r.Domain != "" {
		return c.DomainPorts
	}
	return c.CIDRPorts
}

// Unnamed lists the rules of n whose port the place cannot name.
func (c Capabilities) Unnamed(n Network) (rules []EgressRule) {
	if n.Needs() == EgressNone {
		return nil
	}
	for _, r := range n.Egress {
		if !c.ports(r).names(r.Port) {
			rules = append(rules, r)
		}
	}
	return rules
}

// CheckEgress refuses a policy that a place with these capabilities cannot enforce. The
// error is KindUnsupported, with a remedy.
func (c Capabilities) CheckEgress(n Network) error {
	if need := n.Needs(); !c.Egress.Includes(need) {
		return Errorf(KindUnsupported, "the network policy needs egress enforcement %q, and the place has %q", need, c.Egress).
			At("network").WithRemedy("set network.default: allow if the code may reach everything, or choose a place that enforces this")
	}
	if len(c.Unnamed(n)) == 0 {
		return nil
	}
	what, help := c.TellUnnamed(n)
	return Errorf(KindUnsupported, "%s", what).At("network.egress").WithRemedy("%s", help)
}

// TellUnnamed says, for people, which ports of n the place cannot name, and what to
// write instead.
func (c Capabilities) TellUnnamed(n Network) (reason, help string) {
	var have, asked, write []string
	for _, r := range c.Unnamed(n) {
		kind := "networks"
		if r.Domain != "" {
			kind = "names"
		}
		can, port := "it allows "+kind+" on port 443 only", 443
		switch c.ports(r) { //nolint:exhaustive // the others name any
		case PortsNone:
			can, port = "it allows "+kind+" on every port only", 0
		case PortsOne:
			can = "it allows " + kind + " on one port only, which is named"
		}
		have, asked = append(have, can), append(asked, r.String())
		r.Port = port
		write = append(write, r.String())
	}
	return strings.Join(sorted(have), ", ") + ", and the profile allows " + strings.Join(asked, ", "),
		"write " + strings.Join(sorted(write), ", ") + " if that will do, or choose a place whose allowlist names any port"
}

func sorted(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// String is the rule as a profile writes it.
func (r EgressRule) String() string {
	to, port := r.Domain, "*"
	if to == "" {
		if to = r.CIDR; strings.Contains(to, ":") {
			address, bits, _ := strings.Cut(to, "/")
			to = fmt.Sprintf("[%s]/%s", address, bits)
		}
	}
	if r.Port != 0 {
		port = strconv.Itoa(r.Port)
	}
	return to + ":" + port
}
