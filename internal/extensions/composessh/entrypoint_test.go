package composessh

import (
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// The host ends what is left at the deadline; when its entrypoint had ended is kept.
func TestTheEndOfAnEntrypointOutlivesItsContainer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, exttest.WithTTL(shortTTL), exttest.WithEntrypoint(extensions.Entrypoint{Mode: extensions.EntrypointArgv, Argv: []string{"sh", "-c", "sleep 4; exit 3"}}))
	h := s.provision(t, b, spec)
	var o extensions.Observation
	look := func() { all, err := b.Status(t.Context(), []extensions.Handle{h}); must(t, err); o = all[0] }
	for end := time.Now().Add(shortTTL + 30*time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if look(); len(s.containers(t)) == 0 {
			break
		}
	}
	if len(s.containers(t)) != 0 {
		t.Fatal("the host did not end it")
	}
	if look(); o.Phase != extensions.PhaseFailed || o.Reason != "its entrypoint ended with exit code 3" || !o.EndedAt.Before(spec.Deadline.Add(-5*time.Second)) || o.EndedAt.Before(o.StartedAt) {
		t.Errorf("it is %s (%s), started at %s, ended at %s, deadline %s", o.Phase, o.Reason, o.StartedAt, o.EndedAt, spec.Deadline)
	}
	r, err := b.Teardown(t.Context(), h)
	must(t, err)
	if !r.EndedAt.Equal(o.EndedAt) {
		t.Errorf("torn down, it ended at %s", r.EndedAt)
	}
}
