package daytona_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// An own installation has another way to upload, no ttl and no GPUs; the fake judges each call by version 0.190.
func TestAnInstallationOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	v := daytonatest.StartSelfHosted(t)
	cfg := configFor(v, v.APIURL)
	cfg.Values["edition"] = "self-hosted"
	d, err := extensions.Declared(daytona.New(), cfg.Values)
	if c := d.Capabilities; err != nil || c.Expiry != extensions.ExpirySweep || !c.SelfHosted() || c.GPU || c.ExtendTTL != extensions.ExtendBoth {
		t.Errorf("%v: %+v", err, c)
	}
	b, err := daytona.New().Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	spec := exttest.Spec(t, cfg, exttest.WithTTL(90*time.Second), exttest.WithEnv("A", "canary"),
		exttest.WithWorkspace(extensions.AccessRW, map[string]string{"file": "content"}))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	o, err := b.WaitReady(t.Context(), spec, h)
	must(t, err)
	if !o.Deadline.IsZero() {
		t.Errorf("it declares no deadline and tells %s", o.Deadline)
	}
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: `cat file; printf %s "$A"; printf '\377' >&2; exit 3`})
	if err != nil || string(r.Stdout) != "contentcanary" || string(r.Stderr) != "\xff" || r.ExitCode != 3 {
		t.Errorf("%v: %+v", err, r)
	}
	seen := v.Sandboxes()[h.Ref]
	if seen["autoStopInterval"] != 2 || seen["autoDeleteInterval"] != 0 {
		t.Errorf("idle after %v, deleted %v minutes later", seen["autoStopInterval"], seen["autoDeleteInterval"])
	}
	must(t, b.(extensions.Extender).Extend(t.Context(), h, time.Now().Add(time.Hour)))
	if seen := v.Sandboxes()[h.Ref]; seen["autoStopInterval"] != 60 {
		t.Errorf("extended, it is idle after %v", seen["autoStopInterval"])
	}
	shown, err := json.Marshal(v.Sandboxes())
	must(t, err)
	if all := string(shown) + strings.Join(v.Commands(), "\n"); strings.Contains(all, "canary") {
		t.Error("a variable is in the vendor's record")
	}
	v.Clock().Advance(61 * time.Minute)
	if all, err := b.Status(t.Context(), []extensions.Handle{h}); err != nil || all[0].Phase != extensions.PhaseAbsent {
		t.Errorf("unused for an hour: %+v, %v", all, err)
	}
	if report, err := b.Teardown(t.Context(), h); err != nil || !report.AlreadyGone {
		t.Errorf("%+v, %v", report, err)
	}
}

// open opens an adapter at a fake of its own.
func openAt(t *testing.T) (*daytonatest.Vendor, extensions.Config, extensions.Backend) {
	t.Helper()
	v := daytonatest.Start(t)
	cfg := configFor(v, v.APIURL)
	b, err := daytona.New().Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return v, cfg, b
}

func TestAQuotaIsExhaustedAndARateIsNot(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	v.SetPlan(daytonatest.Plan{CPU: 1})
	make := func() error {
		_, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
		return err
	}
	must(t, make())
	if err := make(); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("beyond the quota: %v", err)
	}
	v.SetPlan(daytonatest.Plan{CreatesPerMinute: 1})
	err := make()
	if told := new(extensions.Error); !extensions.IsKind(err, extensions.KindUnavailable) || !as(err, &told) || told.RetryAfter != time.Second {
		t.Errorf("beyond the rate: %v", err)
	}
}

func as(err error, to **extensions.Error) bool {
	e, ok := err.(*extensions.Error) //nolint:errorlint // the contract's type is outermost
	*to = e
	return ok
}

func TestALimitOfTheOrganizationIsToldAndNotCut(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
	must(t, err)
	v.SetPlan(daytonatest.Plan{MaxTTL: time.Hour})
	if err := b.(extensions.Extender).Extend(t.Context(), h, time.Now().Add(2*time.Hour)); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("%v", err)
	}
}

// The region that was asked for counts, not the one that was meant; what the vendor made elsewhere is ended.
func TestASandboxInAnotherRegionIsEnded(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Region = "eu" }))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if got := v.Sandboxes()[h.Ref]["target"]; got != "eu" {
		t.Errorf("it is in %v", got)
	}
	v.Misplace("us")
	spec = exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Region = "eu" }))
	h, _, err = b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindUnsupported) || !h.IsZero() || len(v.Sandboxes()) != 1 {
		t.Errorf("%v, %s, %d sandboxes", err, h.Encode(), len(v.Sandboxes()))
	}
	spec.Region = "mars"
	if _, _, err := b.Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("a region that is nowhere: %v", err)
	}
}

// A list that lags neither hides what is looked up by name nor proves that it is gone.
func TestAListThatLagsProvesNothing(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	v.SetListLag(20 * time.Second)
	spec := exttest.Spec(t, cfg)
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if found, err := b.Find(t.Context(), spec.ID); err != nil || found.Encode() != h.Encode() {
		t.Errorf("by name: %s, %v", found.Encode(), err)
	}
	if all, err := b.Status(t.Context(), nil); err != nil || len(all) != 0 {
		t.Errorf("at once: %+v, %v", all, err)
	}
	v.Clock().Advance(21 * time.Second)
	if all, err := b.Status(t.Context(), nil); err != nil || len(all) != 1 || all[0].ID != spec.ID {
		t.Errorf("later: %+v, %v", all, err)
	}
}

// States of the vendor that no other test sees.
func TestStatesOfTheVendor(t *testing.T) {
	t.Parallel()
	v, cfg, b := openAt(t)
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
	must(t, err)
	for state, want := range map[string]extensions.Phase{"pulling_snapshot": extensions.PhaseProvisioning, "restoring": extensions.PhaseProvisioning,
		"resizing": extensions.PhaseReady, "stopping": extensions.PhasePaused, "stopped": extensions.PhasePaused,
		"archived": extensions.PhasePaused, "paused": extensions.PhaseFailed, "error": extensions.PhaseFailed,
		"build_failed": extensions.PhaseFailed, "destroying": extensions.PhaseFailed, "unknown": extensions.PhaseUnreachable,
		"destroyed": extensions.PhaseAbsent} {
		v.SetState(h.Ref, state, "as the vendor says")
		all, err := b.Status(t.Context(), []extensions.Handle{h})
		if err != nil || all[0].Phase != want {
			t.Errorf("%s is %s, want %s: %v", state, all[0].Phase, want, err)
		}
		if state == "error" && all[0].Reason != "as the vendor says" {
			t.Errorf("its reason is %q", all[0].Reason)
		}
	}
	v.SetState(h.Ref, "error", "")
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if left := v.Sandboxes(); len(left) > 0 {
		t.Errorf("a failed one is left: %v", left)
	}
}
