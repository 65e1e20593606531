package daytona_test

import (
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// openFor opens an adapter at a fake of its own, with more in its binding's config.
func openFor(t *testing.T, v *daytonatest.Vendor, more map[string]any) (extensions.Config, extensions.Backend) {
	t.Helper()
	cfg := configFor(v, v.APIURL)
	for name, value := range more {
		cfg.Values[name] = value
	}
	b, err := daytona.New().Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return cfg, b
}

// made makes a sandbox that can be used.
func made(t *testing.T, cfg extensions.Config, b extensions.Backend, opts ...exttest.Option) (extensions.Spec, extensions.Handle) {
	t.Helper()
	spec := exttest.Spec(t, cfg, opts...)
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	return spec, h
}

func paused(t *testing.T, b extensions.Backend, h extensions.Handle) {
	t.Helper()
	o, err := b.(extensions.Pauser).Pause(t.Context(), h)
	if must(t, err); o.Phase != extensions.PhasePaused {
		t.Fatalf("paused, it is %s", o.Phase)
	}
}

func sh(t *testing.T, b extensions.Backend, h extensions.Handle, script string) string {
	t.Helper()
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: script})
	if must(t, err); r.ExitCode != 0 {
		t.Fatalf("%s: %d, %s", script, r.ExitCode, r.Stderr)
	}
	return string(r.Stdout)
}

// An installation deletes at its stop what is to be deleted, so that is lifted before, and set again with the deadline.
func TestAPauseAtAnInstallationDeletesNothing(t *testing.T) {
	t.Parallel()
	v := daytonatest.StartSelfHosted(t)
	cfg, b := openFor(t, v, map[string]any{"edition": "self-hosted"})
	_, h := made(t, cfg, b)
	sh(t, b, h, "printf kept >f")
	paused(t, b, h)
	if seen := v.Sandboxes()[h.Ref]; seen["state"] != "stopped" || seen["autoDeleteInterval"] != -1 {
		t.Errorf("paused: %v, deleted after %v", seen["state"], seen["autoDeleteInterval"])
	}
	v.Clock().Advance(24 * time.Hour)
	_, err := b.(extensions.Pauser).Resume(t.Context(), h, time.Now().Add(90*time.Minute))
	must(t, err)
	seen := v.Sandboxes()[h.Ref]
	if seen["state"] != "started" || seen["autoDeleteInterval"] != 0 || seen["autoStopInterval"] != 90 {
		t.Errorf("resumed: %v, idle after %v, deleted after %v", seen["state"], seen["autoStopInterval"], seen["autoDeleteInterval"])
	}
	if got := sh(t, b, h, "cat f"); got != "kept" {
		t.Errorf("the file reads %q", got)
	}
}

// What is moved into the archive meanwhile resumes all the same, and has no snapshots until then.
func TestAPausedContainerMayBeArchived(t *testing.T) {
	t.Parallel()
	v := daytonatest.Start(t)
	cfg, b := openFor(t, v, map[string]any{"archive_after_minutes": 5})
	spec, h := made(t, cfg, b)
	sh(t, b, h, "printf kept >f")
	paused(t, b, h)
	v.Clock().Advance(6 * time.Minute)
	if all, err := b.Status(t.Context(), []extensions.Handle{h}); err != nil || all[0].Phase != extensions.PhasePaused ||
		v.Sandboxes()[h.Ref]["state"] != "archived" {
		t.Errorf("%v, %+v", err, all)
	}
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	_, err = b.(extensions.Snapshotter).Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, Account: cfg.Account})
	if !extensions.IsKind(err, extensions.KindConflict) || extensions.RemedyOf(err) == "" {
		t.Errorf("a snapshot of what is archived: %v", err)
	}
	_, err = b.(extensions.Pauser).Resume(t.Context(), h, spec.Deadline)
	must(t, err)
	if got := sh(t, b, h, "cat f"); got != "kept" {
		t.Errorf("the file reads %q", got)
	}
}

// A resume needs room again.
func TestAResumeBeyondTheQuotaIsExhausted(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	spec, h := made(t, cfg, b)
	paused(t, b, h)
	v.SetPlan(daytonatest.Plan{CPU: 1})
	made(t, cfg, b)
	if _, err := b.(extensions.Pauser).Resume(t.Context(), h, spec.Deadline); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("%v", err)
	}
}

// The vendor makes sandboxes with GPUs only if they are deleted at their stop, so they have no pause and no end but their own.
func TestASandboxWithGPUsIsNeverStopped(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	_, h := made(t, cfg, b, exttest.With(func(s *extensions.Spec) {
		s.Image, s.Resources.GPU = &extensions.Image{Pull: "docker.io/library/debian:12-slim"}, &extensions.GPU{Count: 2, Model: "H100"}
	}))
	if seen := v.Sandboxes()[h.Ref]; seen["gpu"] != 2 || seen["gpuType"] != "H100" || seen["autoDeleteInterval"] != 0 {
		t.Errorf("%v", seen)
	}
	if _, err := b.(extensions.Pauser).Pause(t.Context(), h); !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
		t.Errorf("paused: %v", err)
	}
	if all, err := b.Status(t.Context(), []extensions.Handle{h}); err != nil || all[0].Phase != extensions.PhaseReady ||
		all[0].Allocated.GPU == nil || all[0].Allocated.GPU.Count != 2 {
		t.Errorf("%v, %+v", err, all)
	}
}

// Somebody else's stop of a container is a pause, and of a virtual machine the end of what ran.
func TestAStopByOthersIsToldAsWhatItIs(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	_, h := made(t, cfg, b)
	vms, other := openFor(t, v, map[string]any{"class": "linux-vm", "snapshot": daytonatest.VMSnapshot})
	_, vm := made(t, vms, other)
	for _, x := range []struct {
		b    extensions.Backend
		h    extensions.Handle
		want extensions.Phase
	}{{b, h, extensions.PhasePaused}, {other, vm, extensions.PhaseFailed}} {
		v.SetState(x.h.Ref, "stopped", "")
		if all, err := x.b.Status(t.Context(), []extensions.Handle{x.h}); err != nil || all[0].Phase != x.want {
			t.Errorf("%v, %+v, want %s", err, all, x.want)
		}
	}
}

// The class of a binding is what its sandboxes are, or they are ended.
func TestASandboxOfAnotherClassIsEnded(t *testing.T) {
	t.Parallel()
	v := daytonatest.Start(t)
	cfg, b := openFor(t, v, map[string]any{"class": "linux-vm"}) // the vendor's own snapshot is of a container
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
	if !extensions.IsKind(err, extensions.KindUnsupported) || !h.IsZero() || len(v.Sandboxes()) != 0 {
		t.Errorf("%v, %s, %d sandboxes", err, h.Encode(), len(v.Sandboxes()))
	}
	if _, err := daytona.New().Open(t.Context(), extensions.Config{Account: "acme/web", Credentials: cfg.Credentials,
		Values: map[string]any{"edition": "self-hosted", "class": "linux-vm", "api_url": v.APIURL}}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a virtual machine of an installation: %v", err)
	}
}

// A ttl beyond what the organization allows is refused, and what the vendor made of it is ended.
func TestASandboxThatWouldEndTooEarlyIsEnded(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	v.SetPlan(daytonatest.Plan{MaxTTL: 10 * time.Minute})
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg, exttest.WithTTL(time.Hour)))
	if !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" || !h.IsZero() || len(v.Sandboxes()) != 0 {
		t.Errorf("%v, %s, %d sandboxes", err, h.Encode(), len(v.Sandboxes()))
	}
	_, _, err = b.Provision(t.Context(), exttest.Spec(t, cfg, exttest.WithTTL(5*time.Minute)))
	must(t, err)
}

// A desktop that was asked for and cannot run is told, with what to do.
func TestAnImageWithoutADesktopIsRefused(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	v.SetNoDesktop()
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Requires.Capabilities = []string{extensions.RequireDesktop} }))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if _, err := b.WaitReady(t.Context(), spec, h); !extensions.IsKind(err, extensions.KindUnsupported) || extensions.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
	made(t, cfg, b) // who asks for none is not concerned
}
