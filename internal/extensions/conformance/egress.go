package conformance

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Listener is something outside of every sandbox, which listens.
type Listener struct {
	// CIDR or Domain is how an allowlist names it, if it can, and how Send does.
	CIDR, Domain string
	Port         int
	// Send returns, by the way they take, commands that try to get a word out to it: WayName by a look-up of a name
	// that an allowlist does not have, others by a connection or a packet. Each ends within seconds, with any exit code.
	Send map[string]func(word string) []string
	// Heard reports whether the word arrived. It waits as long as one that was sent may take.
	Heard func(word string) bool
}

// WayName is the way of Listener.Send that goes through a resolver.
const WayName = "name"

func hookListen(h Harness) (string, bool) { return "Listen", h.Listen != nil }

var egressChecks = []check{
	{name: "egress/deny-denies", power: extensions.PowerExec, hook: hookListen, run: func(e *env) {
		if e.capabilities().Egress == extensions.EgressNone {
			return
		}
		_, open, _ := e.ready(WithNetwork(extensions.Network{Default: "allow"}))
		_, shut, _ := e.ready(WithNetwork(extensions.Network{Default: "deny"}))
		for _, l := range e.h.Listen(e.TB, e.cfg) {
			for way := range l.Send {
				if !e.arrives(l, open, way) {
					e.Fatalf("%s: nothing arrives although the network is allowed, so nothing is proved", way)
				}
				if (way != WayName || e.desc.Capabilities.DNS != extensions.DNSOpen) && e.arrives(l, shut, way) {
					e.Errorf("%s: it arrived although the network is denied", way)
				}
			}
		}
	}},
	{name: "egress/allows-only-what-is-named", power: extensions.PowerExec, hook: hookListen, run: allowsOnlyWhatIsNamed},
	{name: "egress/unnameable-ports-refused", run: func(e *env) {
		c := e.capabilities()
		for _, r := range []extensions.EgressRule{{CIDR: "192.0.2.0/24"}, {CIDR: "192.0.2.0/24", Port: 22}, {CIDR: "192.0.2.0/24", Port: 443},
			{Domain: "example.org"}, {Domain: "example.org", Port: 22}, {Domain: "example.org", Port: 443}} {
			n := extensions.Network{Default: "deny", Egress: []extensions.EgressRule{r}}
			if c.Egress.Includes(n.Needs()) && len(c.Unnamed(n)) > 0 {
				e.refused("provision with an allowlist of "+r.String(), e.spec(WithNetwork(n)), extensions.KindUnsupported)
			}
		}
	}},
	{name: "egress/ingress-is-shut", power: extensions.PowerPorts, hook: hookNamed("Serve and Knock", func(h Harness) bool {
		return h.Serve != nil && h.Knock != nil
	}), run: func(e *env) {
		if e.desc.Capabilities.Ingress != extensions.IngressClosed {
			return
		}
		_, h, _ := e.ready(WithNetwork(extensions.Network{Default: "deny"}))
		_, port := e.h.Serve(e.TB, e.b, h)
		if e.h.Knock(e.TB, e.cfg, h, port) {
			e.Error("a stranger reaches a port inside although the network is denied")
		}
	}},
}

// allowsOnlyWhatIsNamed tries each listener under allowlists that name it, another port of it, and another place.
func allowsOnlyWhatIsNamed(e *env) {
	c := e.capabilities()
	for _, l := range e.h.Listen(e.TB, e.cfg) {
		named, other := extensions.EgressRule{CIDR: l.CIDR, Port: l.Port}, extensions.EgressRule{CIDR: "192.0.2.1/32", Port: l.Port}
		ports := c.CIDRPorts
		if l.Domain != "" {
			named, other = extensions.EgressRule{Domain: l.Domain, Port: l.Port}, extensions.EgressRule{Domain: "elsewhere.example", Port: l.Port}
			ports = c.DomainPorts
		}
		rules := map[extensions.EgressRule]bool{}
		switch {
		case ports == "", l.CIDR+l.Domain == "", ports == extensions.PortsHTTPS && l.Port != 443:
			continue
		case ports == extensions.PortsNone:
			named.Port, other.Port = 0, 0
		case ports == extensions.PortsAny, ports == extensions.PortsOne:
			port := named
			port.Port++
			rules[port] = false
		}
		rules[named], rules[other] = true, false
		for rule, want := range rules {
			_, h, _ := e.ready(WithNetwork(extensions.Network{Default: "deny", Egress: []extensions.EgressRule{rule}}))
			for way := range l.Send {
				got := e.arrives(l, h, way)
				switch {
				case way != WayName && got != want:
					e.Errorf("%s to %s%s:%d under an allowlist of %s: arrived %t, want %t", way, l.CIDR, l.Domain, l.Port, rule, got, want)
				case way == WayName && got && c.DNS == extensions.DNSClosed:
					e.Errorf("beside an allowlist of %s a name was looked up that it does not have", rule)
				}
			}
		}
	}
}

// arrives tries one way out of h.
func (e *env) arrives(l Listener, h extensions.Handle, way string) bool {
	e.Helper()
	word := "w" + string(e.newID())[4:]
	e.exec(h, extensions.ExecRequest{Command: l.Send[way](word)})
	return l.Heard(word)
}

// capabilities are what is declared for the place of the harness, as far as a plan knows.
func (e *env) capabilities() extensions.Capabilities {
	c := e.desc.Capabilities
	if n, ok := e.ext.(extensions.HostNarrower); ok && e.cfg.Host != nil {
		c, _ = n.OnHost(c, *e.cfg.Host)
	}
	return c
}

// WithNetwork sets the network policy.
func WithNetwork(n extensions.Network) Option {
	return func(s *extensions.Spec) { s.Network = n }
}
