package profile

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ParseEgress reads one allowed destination:
//
//	10.2.0.0/16:443   10.2.0.7:443   [2001:db8::]/32:443   pypi.org:443   *.pypi.org:443
//
// The port is 1-65535, or "*" for every port. It is required, because a forgotten port would open all of
// them. Addresses become networks, and names lower case. Anything else is KindInvalid.
func ParseEgress(s string) (extensions.EgressRule, error) {
	bad := func(format string, args ...any) (extensions.EgressRule, error) {
		return extensions.EgressRule{}, invalid("egress %s: %s", quoted(s), invalid(format, args...).Error())
	}
	if strings.Contains(s, "://") {
		return bad("want a destination and a port without a scheme, as in pypi.org:443")
	}
	host, port, ok := cutPort(s)
	if !ok {
		return bad("the port is missing: add :443, or :* for every port")
	}
	rule := extensions.EgressRule{}
	if port != "*" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '0' || port[0] == '+' {
			return bad("%s is not a port between 1 and 65535", quoted(port))
		}
		rule.Port = int(n)
	}
	if !looksLikeAddress(host) {
		name := strings.ToLower(host)
		if why := badDomain(name); why != "" {
			return bad("%s", why)
		}
		rule.Domain = name
		return rule, nil
	}
	prefix, why := parseNetwork(host)
	if why != "" {
		return bad("%s", why)
	}
	rule.CIDR = prefix.String()
	return rule, nil
}

// cutPort splits at the colon of the port. A bare IPv6 address has none: it needs brackets.
func cutPort(s string) (host, port string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || i < strings.LastIndexByte(s, ']') || i == len(s)-1 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// looksLikeAddress also accepts malformed addresses: 10.2.0.300, 10.0.0/8.
func looksLikeAddress(host string) bool {
	if strings.ContainsAny(host, "[]:/") {
		return true
	}
	labels := strings.Split(host, ".")
	return strings.Trim(labels[len(labels)-1], "0123456789") == "" && labels[len(labels)-1] != ""
}

func parseNetwork(host string) (netip.Prefix, string) {
	addr, bits, hasBits := strings.Cut(host, "/")
	if strings.HasPrefix(addr, "[") && strings.HasSuffix(addr, "]") {
		addr = addr[1 : len(addr)-1]
		if !strings.Contains(addr, ":") {
			return netip.Prefix{}, "brackets are for IPv6 addresses"
		}
	} else if strings.Contains(addr, ":") {
		return netip.Prefix{}, "an IPv6 address needs brackets, as in [2001:db8::]/32:443"
	}
	ip, err := netip.ParseAddr(addr)
	if err != nil || ip.Zone() != "" || ip.Is4In6() {
		return netip.Prefix{}, quoted(addr) + " is not an IP address"
	}
	if !hasBits {
		return netip.PrefixFrom(ip, ip.BitLen()), ""
	}
	n, err := strconv.ParseUint(bits, 10, 8)
	if err != nil || int(n) > ip.BitLen() || len(bits) > 1 && bits[0] == '0' {
		return netip.Prefix{}, quoted("/"+bits) + " is not a prefix length from /0 to /" + strconv.Itoa(ip.BitLen())
	}
	prefix := netip.PrefixFrom(ip, int(n))
	if masked := prefix.Masked(); masked != prefix {
		return netip.Prefix{}, "the address has bits beyond its prefix: write " + masked.String() + ", or the address alone"
	}
	return prefix, ""
}

// badDomain says why name is no host name (RFC 1123, optionally after "*."); "" if it is one.
func badDomain(name string) string {
	rest := strings.TrimPrefix(name, "*.")
	switch {
	case name == "*":
		return "to allow everything, set network.default to allow"
	case strings.Contains(rest, "*"):
		return `"*" can only stand in front, as in *.pypi.org`
	case len(name) > 253:
		return "the name is longer than 253 characters"
	}
	for label := range strings.SplitSeq(rest, ".") {
		if len(label) > 63 || !word(label, "-") || strings.HasSuffix(label, "-") {
			return quoted(name) + " is not a host name"
		}
	}
	return ""
}
