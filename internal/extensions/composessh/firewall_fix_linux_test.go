package composessh

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A look puts rules back only while nobody works on the sandbox, or else it would
// write over what that one does.
func TestRulesComeBackUnderTheSandboxsLock(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Host.AllowFirewall = true
	b := s.open(t)
	spec := s.spec(t)
	spec.Network.Egress = []extensions.EgressRule{{CIDR: "198.51.100.0/24", Port: 443}}
	h := s.provision(t, b, onImage(t, spec))
	before := len(rulesOf(t, spec.ID))
	for _, rule := range rulesOf(t, spec.ID) {
		if strings.HasPrefix(rule, "-A INPUT") && strings.Contains(rule, "conntrack") {
			args := strings.Fields(strings.ReplaceAll(rule, `"`, ""))
			args[0] = "-D"
			if out, err := exec.CommandContext(t.Context(), "iptables", append([]string{"-w"}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("iptables %q: %v: %s", args, err, out)
			}
		}
	}
	lost := len(rulesOf(t, spec.ID))
	if lost == before {
		t.Fatal("no rule could be removed")
	}
	manifest := s.manifest(t, h.ID)
	unlock := s.lockBox(t, h.ID)
	s.observe(t, b, h)
	if n := len(rulesOf(t, spec.ID)); n != lost || s.manifest(t, h.ID) != manifest {
		t.Errorf("%d rules, %d before: a look changed a sandbox that is being worked on", n, lost)
	}
	unlock()
	s.observe(t, b, h)
	if n := len(rulesOf(t, spec.ID)); n != before {
		t.Errorf("%d rules, want %d", n, before)
	}
}
