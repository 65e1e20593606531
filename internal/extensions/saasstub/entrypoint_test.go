package saasstub_test

import (
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestAnEntrypointStandsStillWhileItsSandboxIsPaused(t *testing.T) {
	t.Parallel()
	b, cfg := opened(t, saasstub.New())
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg, exttest.WithEntrypoint(extensions.Entrypoint{
		Mode: extensions.EntrypointArgv, Argv: []string{"sh", "-c", "sleep 120; exit 3"}})))
	must(t, err)
	p := b.(extensions.Pauser)
	look := func(after time.Duration) extensions.Observation {
		must(t, vendor.At(dirOf(cfg)).Advance(after))
		all, err := b.Status(t.Context(), []extensions.Handle{h})
		must(t, err)
		return all[0]
	}
	look(time.Minute)
	_, err = p.Pause(t.Context(), h)
	must(t, err)
	if o := look(5 * time.Minute); o.Phase != extensions.PhasePaused {
		t.Errorf("paused, it is %s: %s", o.Phase, o.Reason)
	}
	_, err = p.Resume(t.Context(), h, time.Time{})
	must(t, err)
	if o := look(50 * time.Second); o.Phase != extensions.PhaseReady {
		t.Errorf("ten seconds before its end it is %s: %s", o.Phase, o.Reason)
	}
	o := look(20 * time.Second)
	lived := o.EndedAt.Sub(o.StartedAt).Round(time.Second)
	if o.Phase != extensions.PhaseFailed || lived < 7*time.Minute-time.Second || lived > 7*time.Minute+5*time.Second {
		t.Errorf("it is %s (%s), and lived for %s", o.Phase, o.Reason, lived)
	}
}
