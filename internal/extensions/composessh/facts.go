package composessh

import (
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// OnHost implements extensions.HostNarrower's rule: what is left of the ceiling
// is the least of the descriptor, the host's arguments and what probing found.
func onHost(c extensions.Capabilities, h extensions.Host, facts *extensions.HostFacts) (extensions.Capabilities, []string) {
	egress, reasons := hostEgress(h, facts)
	if !egress.Includes(c.Egress) {
		c.Egress = egress
		c.CustomNetworkPolicy = egress.Includes(extensions.EgressCIDR)
	} else {
		reasons = nil
	}
	if facts == nil {
		return c, reasons
	}
	if facts.Expiry == extensions.ExpirySweep && c.Expiry != extensions.ExpirySweep {
		c.Expiry = extensions.ExpirySweep
		reasons = append(reasons, fmt.Sprintf("expiry: the host %q keeps no process that outlives a login, so nothing there ends a sandbox in time; enable lingering for the login (loginctl enable-linger)", h.Name))
	}
	if c.GPU && !facts.GPU {
		c.GPU = false
		reasons = append(reasons, fmt.Sprintf("gpu: the host %q has none that its Docker can pass on; install the NVIDIA container toolkit", h.Name))
	}
	return c, reasons
}

// hostEgress is what can be enforced on h, and what would make it more.
func hostEgress(h extensions.Host, facts *extensions.HostFacts) (extensions.Egress, []string) {
	have := extensions.EgressDenyOnly
	var reasons []string
	if h.AllowFirewall {
		have = extensions.EgressCIDR
	}
	switch {
	case checkProxyImage(h.ProxyImage) != nil:
		reasons = append(reasons, fmt.Sprintf("egress: the proxy image of the host %q is not pinned by a digest; write proxy_image as name@sha256:…", h.Name))
	case h.ProxyImage != "":
		have = extensions.EgressDomain
	}
	if have == extensions.EgressDenyOnly {
		reasons = append(reasons, fmt.Sprintf("egress: the owner of the host %q allows no firewall rules and names no proxy; set allow_firewall = true for networks, proxy_image for domains", h.Name))
	} else if have == extensions.EgressCIDR {
		reasons = append(reasons, fmt.Sprintf("egress: the host %q names no proxy; set its proxy_image for domains", h.Name))
	}
	if facts != nil && facts.Egress != "" && !facts.Egress.Includes(have) {
		reasons = append(reasons, fmt.Sprintf("egress: probing the host %q found that it enforces %q; its notes say what is missing (sandboxer host check)", h.Name, facts.Egress))
		have = facts.Egress
	}
	return have, reasons
}
