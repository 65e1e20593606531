package composessh

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// OnHost implements extensions.HostNarrower: egress, expiry, accelerators and sizes as
// far as the host's owner and what was found there allow them.
func (extension) OnHost(c extensions.Capabilities, h extensions.Host, facts *extensions.HostFacts) (extensions.Capabilities, []string) {
	return onHost(c, h, facts)
}
