package composessh

import (
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A probe tells what is true of this machine, proves deny once, and leaves
// nothing on the host.
func TestProbeTellsTheHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	found, _, err := b.Probe(t.Context())
	must(t, err)
	f := found.Machine
	if f.OS != "linux" || f.CPUs < 1 || f.MemoryMB < 256 || f.FreeDisk < 1 || f.Docker == "" || f.Compose == "" {
		t.Errorf("facts: %+v", f)
	}
	if !slices.Equal(f.Isolation, []extensions.Isolation{extensions.IsolationContainer}) || f.Egress != extensions.EgressDenyOnly {
		t.Errorf("isolation %v, egress %q, notes %q", f.Isolation, f.Egress, f.Notes)
	}
	if !slices.Equal(f.SecretsAs, extensions.SecretDeliveries) {
		t.Errorf("secrets can be given as %v, notes %q", f.SecretsAs, f.Notes)
	}
	if f.ClockSkew.Abs() > 10*time.Second {
		t.Errorf("this machine is %s ahead of itself", f.ClockSkew)
	}
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	proof := proofOf(b.stateDir, b.host).Read()
	if proof == "" {
		t.Fatal("the proof was not kept")
	}
	if engineOf(b.stateDir, b.host).Read() == "" {
		t.Error("what it said of its engine was not kept")
	}
	started := time.Now()
	_, _, err = b.Probe(t.Context())
	must(t, err)
	t.Logf("a second probe took %s with %q", time.Since(started), proof)
	if again := proofOf(b.stateDir, b.host).Read(); again != proof {
		t.Errorf("the proof changed: %q", again)
	}
}
