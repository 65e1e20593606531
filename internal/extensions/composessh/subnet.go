package composessh

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// subnetReserved counts the addresses of a subnet that no container gets: the network's own, the broadcast
// address, and the one that engines keep for a gateway.
const subnetReserved = 3

// sharedRange is RFC 6598's, private as far as a host's own networks go.
var sharedRange = netip.MustParsePrefix("100.64.0.0/10")

// checkSubnets refuses ranges that others could own, that overlap, or that are too small for one subnet of
// the size.
func checkSubnets(ranges []netip.Prefix, size int) error {
	for i, p := range ranges {
		first := p.Addr()
		switch {
		case !first.IsPrivate() && !sharedRange.Contains(first):
			return extensions.Errorf(extensions.KindInvalid, "%s is not a private range", p).At("config.subnets").
				WithRemedy("use a part of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10 that nothing on the host's networks uses")
		case p.Bits() < privateBits(first):
			return extensions.Errorf(extensions.KindInvalid, "%s is wider than its private range", p).At("config.subnets").
				WithRemedy("use a part of the private range, such as 10.213.0.0/16")
		case p.Bits() > size:
			return extensions.Errorf(extensions.KindInvalid, "%s has no subnet of /%d", p, size).At("config.subnets").
				WithRemedy("give a wider range, or a longer subnet_size")
		}
		for _, other := range ranges[:i] {
			if p.Overlaps(other) {
				return extensions.Errorf(extensions.KindInvalid, "%s and %s overlap", other, p).At("config.subnets")
			}
		}
	}
	return nil
}

func privateBits(a netip.Addr) int {
	switch {
	case sharedRange.Contains(a):
		return sharedRange.Bits()
	case netip.MustParsePrefix("172.16.0.0/12").Contains(a):
		return 12
	case netip.MustParsePrefix("192.168.0.0/16").Contains(a):
		return 16
	}
	return 8
}

// subnetPrefix returns the length of the smallest subnet, of size or larger, with room for that many
// containers.
func subnetPrefix(containers, size int) int {
	for size > 8 && 1<<(32-size)-subnetReserved < containers {
		size--
	}
	return size
}

// subnetVars are the variables of sh/subnet.sh. containers counts the containers on each network, in the
// order of compose.Rendered.Networks.
func subnetVars(ranges []netip.Prefix, size int, containers []int) map[string]string {
	words := make([]string, len(ranges))
	for i, p := range ranges {
		words[i] = p.String()
	}
	prefixes := make([]string, len(containers))
	for i, n := range containers {
		prefixes[i] = strconv.Itoa(subnetPrefix(n, size))
	}
	return map[string]string{
		"subnet_ranges":   strings.Join(words, " "),
		"subnet_size":     strconv.Itoa(size),
		"subnet_prefixes": strings.Join(slices.Clip(prefixes), " "),
	}
}
