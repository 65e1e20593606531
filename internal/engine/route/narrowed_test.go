package route

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A refusal tells what concerns it, not everything that the host lacks.
func TestHelpOnAHostIsAboutTheRule(t *testing.T) {
	t.Parallel()
	ceiling := extensions.Capabilities{Egress: extensions.EgressDomain, CIDRPorts: extensions.PortsAny, GPU: true,
		Expiry:          extensions.ExpiryHost,
		IsolationLevels: []extensions.Isolation{extensions.IsolationContainer}, Regions: []string{"*"}}
	left := ceiling
	left.Egress, left.GPU = extensions.EgressDenyOnly, false
	q := Query{
		Spec: extensions.Spec{Isolation: extensions.IsolationContainer,
			Network: extensions.Network{Default: "deny", Egress: []extensions.EgressRule{{CIDR: "198.51.100.0/24", Port: 443}}}},
		Candidates: []Candidate{{Binding: "ext.compose-ssh", Place: extensions.PlaceHost, Host: &extensions.Host{Name: "one"},
			Capabilities: left, Declared: &ceiling, Narrowed: []string{"egress: set allow_firewall", "gpu: install the toolkit"}}},
	}
	d := Select(q)
	found := false
	for _, r := range d.Refusals() {
		if r.Rule == RuleEgress {
			found = true
			if !strings.Contains(r.Help, "set allow_firewall") || strings.Contains(r.Help, "toolkit") || strings.Contains(r.Help, "egress: ") {
				t.Errorf("help: %q", r.Help)
			}
		}
	}
	if !found {
		t.Fatalf("not refused by %s: %+v", RuleEgress, d.Refusals())
	}
}
