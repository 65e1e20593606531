package conformance

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

var egressMutants = map[string]mutant{
	"egress/deny-denies": {provision: provisionWith(func(_ *broken, s *spec) {
		if len(s.Network.Egress) == 0 {
			s.Network.Default = "allow"
		}
	})},
	"egress/allows-only-what-is-named": {provision: provisionWith(func(_ *broken, s *spec) {
		for i := range s.Network.Egress { // a place that drops ports
			rule := s.Network.Egress[i]
			rule.Port = 0
			s.Network.Egress = []extensions.EgressRule{rule}
		}
	})},
	"egress/unnameable-ports-refused": {describe: func(d *extensions.Descriptor) {
		d.Capabilities.DomainPorts = extensions.PortsHTTPS
	}},
	"egress/ingress-is-shut": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		h, o, err := b.wholeBackend.Provision(c, s)
		if err == nil {
			err = place(b.cfg).Publish(string(s.ID))
		}
		return h, o, err
	}},
}
