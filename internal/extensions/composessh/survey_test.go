package composessh

import (
	"os"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Another login of the same engine and account has its folders elsewhere: what it
// makes has not lost them, and is not there to be swept by us.
func TestAnotherLoginsSandboxesAreNoOrphansOfOurs(t *testing.T) {
	t.Parallel()
	s, other := newSite(t), newSite(t)
	other.config.Account = s.config.Account
	b, otherB := s.open(t), other.open(t)
	theirs := other.provision(t, otherB, other.spec(t))
	ours := s.provision(t, b, s.spec(t))
	for range 2 {
		all, err := b.Status(t.Context(), nil)
		must(t, err)
		if len(all) != 1 || all[0].ID != ours.ID {
			t.Errorf("listed: %+v", all)
		}
		must(t, os.RemoveAll(s.root)) // our own that did lose it is still one
	}
	if o := s.observe(t, b, ours); o.Phase != extensions.PhaseFailed {
		t.Errorf("it is %s: %s", o.Phase, o.Reason)
	}
	// They are not ours to end, and a check of the host tells of them.
	found, _, err := b.Probe(t.Context())
	must(t, err)
	f := found.Machine
	if notes := strings.Join(f.Notes, "\n"); !strings.Contains(notes, string(theirs.ID)+" in "+other.root) ||
		strings.Contains(notes, string(ours.ID)+" in") || len(f.Unfit) > 0 {
		t.Errorf("notes: %q", notes)
	}
	if o := other.observe(t, otherB, theirs); o.Phase != extensions.PhaseReady {
		t.Errorf("theirs is %s: %s", o.Phase, o.Reason)
	}
}
