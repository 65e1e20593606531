package composessh

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// The host ends what is left at the deadline; when its entrypoint had ended is kept.
func TestTheEndOfAnEntrypointOutlivesItsContainer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, exttest.WithEntrypoint(extensions.Entrypoint{Mode: extensions.EntrypointArgv, Argv: []string{"sh", "-c", "sleep 4; exit 3"}}))
	h := s.provision(t, b, spec)
	var o extensions.Observation
	look := func() { all, err := b.Status(t.Context(), []extensions.Handle{h}); must(t, err); o = all[0] }
	if !waitFor(func() bool { look(); return o.Phase == extensions.PhaseFailed }) {
		t.Fatalf("it is %s (%s)", o.Phase, o.Reason)
	}
	first := o.EndedAt
	s.overdue(t, h.ID)
	if !waitFor(func() bool { return len(s.containers(t)) == 0 && s.expired(h.ID) }) {
		t.Fatal("the host did not end it")
	}
	if look(); o.Phase != extensions.PhaseFailed || o.Reason != "its entrypoint ended with exit code 3" || !o.EndedAt.Equal(first) || o.EndedAt.Before(o.StartedAt) {
		t.Errorf("it is %s (%s), started at %s, ended at %s, before at %s", o.Phase, o.Reason, o.StartedAt, o.EndedAt, first)
	}
	r, err := b.Teardown(t.Context(), h)
	must(t, err)
	if !r.EndedAt.Equal(o.EndedAt) {
		t.Errorf("torn down, it ended at %s", r.EndedAt)
	}
}
