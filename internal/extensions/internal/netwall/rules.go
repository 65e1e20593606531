package netwall

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckRules refuses rules that these walls cannot enforce.
func CheckRules(rules []extensions.EgressRule) error {
	for i, r := range rules {
		field := fmt.Sprintf("network.egress[%d]", i)
		if r.Port < 0 || r.Port > 65535 {
			return extensions.Errorf(extensions.KindInvalid, "%d is not a port", r.Port).At(field)
		}
		if r.Domain != "" {
			if !validDomain(r.Domain) {
				return extensions.Errorf(extensions.KindInvalid, "%q is not a domain name", r.Domain).At(field).
					WithRemedy(`write "example.org", or "*.example.org" for its sub-domains`)
			}
			continue
		}
		p, err := netip.ParsePrefix(r.CIDR)
		if err != nil {
			return extensions.Errorf(extensions.KindInvalid, "%q is not a network in CIDR notation", r.CIDR).At(field)
		}
		if !p.Addr().Is4() {
			return extensions.Errorf(extensions.KindUnsupported, "%s: sandboxes behind these walls have no IPv6", p).At(field).
				WithRemedy("use an IPv4 network or a domain")
		}
	}
	return nil
}

// Allowed returns the networks of checked rules as words CIDR,PORT for rules.sh; names have none.
func Allowed(rules []extensions.EgressRule) string {
	var allow []string
	for _, rule := range rules {
		if p, err := netip.ParsePrefix(rule.CIDR); err == nil {
			allow = append(allow, p.Masked().String()+","+strconv.Itoa(rule.Port))
		}
	}
	return strings.Join(allow, " ")
}

var domainLabel = regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$`)

// validDomain accepts a full name of at least two labels, or "*." and such a name. An address is not a name.
func validDomain(name string) bool {
	name = strings.TrimPrefix(name, "*.")
	if _, err := netip.ParseAddr(name); err == nil || len(name) > 253 {
		return false
	}
	labels := strings.Split(name, ".")
	return len(labels) > 1 && !slices.ContainsFunc(labels, func(l string) bool { return !domainLabel.MatchString(l) }) &&
		strings.ContainsFunc(labels[len(labels)-1], func(r rune) bool { return r < '0' || r > '9' })
}
