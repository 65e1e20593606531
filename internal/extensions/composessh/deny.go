package composessh

import (
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/netwall"
)

// denyNetwork turns a rendered network into one that the host is not part of. The host itself settles the
// final options, which are those it proved deny with: a bridge's options mean nothing to the other driver.
func denyNetwork(network map[string]any, index int) {
	network["driver"] = "${SBX_NET_DRIVER}"
	network["internal"] = true
	network["enable_ipv6"] = false
	network["driver_opts"] = map[string]any{
		"com.docker.network.bridge.inhibit_ipv4": "true",
		"parent":                                 "${SBX_NET_PARENT_" + strconv.Itoa(index) + "}",
	}
}

// proofOf is the last proof of h, kept here because a host without sandboxes keeps nothing of ours. The host
// compares it with its engine, kernel and boot. stateDir is Config.StateDir.
func proofOf(stateDir string, h extensions.Host) netwall.Proof {
	return netwall.ProofAt(stateDir, h.Ref())
}

// engineOf is what h last said of its engine, in its scripts' words, kept and compared likewise. It spares the first
// create the question.
func engineOf(stateDir string, h extensions.Host) netwall.Proof {
	return netwall.ProofAt(stateDir, "engine "+h.Ref())
}
