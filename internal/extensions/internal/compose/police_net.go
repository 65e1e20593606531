package compose

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// maxPorts bounds the ports one service publishes or exposes.
const maxPorts = 100

var rangePattern = regexp.MustCompile(`([0-9]{1,5})-([0-9]{1,5})`)

// boundPorts counts a file's ports before the library expands each into an entry: two numbers can stand for
// sixty-five thousand.
func (l *loading) boundPorts(cfg map[string]any, file string) error {
	total := 0
	for _, kind := range []string{"services", "jobs"} {
		for _, s := range mapsIn(cfg[kind]) {
			for _, text := range texts(s["ports"]) {
				total++
				for _, m := range rangePattern.FindAllStringSubmatch(text, 8) {
					first, _ := strconv.Atoi(m[1])
					last, _ := strconv.Atoi(m[2])
					total += max(0, last-first)
				}
			}
		}
	}
	if total > 10*maxPorts {
		return l.stop("port-range", file, fmt.Errorf("there are about %d", total))
	}
	return nil
}

// ports judges published ports. Input.Publish decides what happens to them.
func ports(p *policer, where string, v reflect.Value) {
	all := v.Interface().([]types.ServicePortConfig)
	if len(all) > maxPorts {
		p.found.refuse("port-range", where, fmt.Sprintf("there are %d", len(all)))
		return
	}
	for i, c := range all {
		at := fmt.Sprintf("%s[%d]", where, i)
		first, last, ok := portRange(c.Published)
		if c.Target < 1 || c.Target > 65535 || !ok || last-first >= maxPorts || !oneWord(c.Protocol, "", "tcp", "udp", "sctp") ||
			!oneWord(c.Mode, "", "ingress", "host") {
			p.found.refuse("port-range", at, fmt.Sprintf("%s:%d/%s", quoted(c.Published), c.Target, quoted(c.Protocol)))
			continue
		}
		p.address(at, c)
		p.walk(at, v.Index(i))
	}
}

// address judges the address where a port is published.
func (p *policer) address(at string, c types.ServicePortConfig) {
	mode := p.publish()
	if mode == PublishNone {
		return
	}
	if p.in.Deny && !p.in.Guarded {
		p.found.refuse("ports-under-deny", at, fmt.Sprintf("the port %d is published", c.Target))
		return
	}
	if c.HostIP == "" && mode != PublishAsWritten {
		return // it moves to loopback
	}
	ip, err := netip.ParseAddr(c.HostIP)
	if err == nil && ip.IsLoopback() && ip.Zone() == "" {
		return
	}
	host := c.HostIP
	if host == "" {
		host = "every address"
	}
	number := c.Published
	if number == "" {
		number = strconv.Itoa(int(c.Target))
	}
	found := fmt.Sprintf("the port %d is published on %s", c.Target, host)
	if mode == PublishAsWritten && (c.HostIP == "" || err == nil && ip.Zone() == "") {
		p.found.refuseUnless("port-public", number, at, found)
		return
	}
	p.found.refuse("port-public", at, found)
}

func oneWord(s string, words ...string) bool {
	for _, w := range words {
		if s == w {
			return true
		}
	}
	return false
}

// portRange reads "", "80" and "8000-8010".
func portRange(s string) (first, last int, ok bool) {
	if s == "" {
		return 0, 0, true
	}
	from, to, ranged := strings.Cut(s, "-")
	if !ranged {
		to = from
	}
	a, errA := strconv.ParseUint(from, 10, 16)
	b, errB := strconv.ParseUint(to, 10, 16)
	return int(a), int(b), errA == nil && errB == nil && a <= b
}

func portCount(p *policer, where string, v reflect.Value) {
	if v.Len() > maxPorts {
		p.found.refuse("port-range", where, fmt.Sprintf("there are %d", v.Len()))
		return
	}
	for i := range v.Len() {
		number, proto, _ := strings.Cut(v.Index(i).String(), "/")
		first, last, ok := portRange(number)
		if !ok || first == 0 || last-first >= maxPorts || !oneWord(proto, "", "tcp", "udp", "sctp") {
			p.found.refuse("port-range", fmt.Sprintf("%s[%d]", where, i), quoted(v.Index(i).String()))
		}
	}
}
