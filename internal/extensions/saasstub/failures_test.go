package saasstub_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// opened returns a backend at a fresh vendor.
func opened(t *testing.T, ext extensions.Extension) (extensions.Backend, extensions.Config) {
	t.Helper()
	cfg := extensions.Config{Binding: "ext.stub", Account: "acme/web", Values: map[string]any{"dir": t.TempDir()}}
	b, err := ext.Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b, cfg
}

func TestEachFaultHasItsKind(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		do    vendor.Action
		want  extensions.Kind
		after time.Duration
		left  bool // whether the sandbox may exist, so that a handle is due
	}{
		{do: vendor.DoUnauthorized, want: extensions.KindUnauthorized},
		{do: vendor.DoInvalid, want: extensions.KindInvalid},
		{do: vendor.DoQuota, want: extensions.KindExhausted},
		{do: vendor.DoNoCapacity, want: extensions.KindExhausted},
		{do: vendor.DoNotOffered, want: extensions.KindUnsupported},
		{do: vendor.DoThrottle, want: extensions.KindUnavailable, after: 7 * time.Second},
		{do: vendor.DoUnavailable, want: extensions.KindUnavailable, after: 7 * time.Second},
		{do: vendor.DoConflict, want: extensions.KindConflict},
		{do: vendor.DoUnreachable, want: extensions.KindUnreachable},
		{do: vendor.DoLoseAnswer, want: extensions.KindIndeterminate, left: true},
		{do: vendor.DoHang, want: extensions.KindIndeterminate, left: true},
	} {
		t.Run(string(tc.do), func(t *testing.T) {
			t.Parallel()
			b, cfg := opened(t, saasstub.New())
			script(t, cfg, saasstub.Script{Rules: []saasstub.Rule{{Op: vendor.OpCreate, Do: tc.do, RetryAfter: vendor.Duration(tc.after)}}})
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			h, _, err := b.Provision(ctx, exttest.Spec(t, cfg))
			if !extensions.IsKind(err, tc.want) {
				t.Fatalf("%v is %s, want %s", err, extensions.KindOf(err), tc.want)
			}
			var e *extensions.Error
			if !errors.As(err, &e) || e.RetryAfter != tc.after || e.Op != "provision" {
				t.Errorf("retry after %s, op %q", e.RetryAfter, e.Op)
			}
			objs, err := vendor.At(dirOf(cfg)).Objects()
			must(t, err)
			if h.IsZero() == tc.left || (len(objs) > 0) != tc.left {
				t.Errorf("handle %q and %d objects, want both: %t", h.Encode(), len(objs), tc.left)
			}
		})
	}
}

func TestACreationCutShortAnywhereIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	for _, op := range []vendor.Op{vendor.OpCreate, vendor.OpFiles, vendor.OpStart} {
		for _, do := range []vendor.Action{vendor.DoLoseAnswer, vendor.DoUnavailable, vendor.DoHang, vendor.DoHangBefore} {
			t.Run(string(op)+" "+string(do), func(t *testing.T) {
				t.Parallel()
				b, cfg := opened(t, saasstub.New())
				script(t, cfg, one(op, do))
				spec := exttest.Spec(t, cfg, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"f": "content"}), exttest.WithEnv("A", "b"))
				patience := time.Minute
				if do == vendor.DoHang || do == vendor.DoHangBefore {
					patience = 3 * time.Second // enough to come to it
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, _, err := b.Provision(ctx, spec); err == nil {
					t.Fatal("the scripted failure did not happen")
				}
				h, o, err := b.Provision(t.Context(), spec)
				must(t, err)
				if o.Phase != extensions.PhaseReady {
					t.Errorf("phase %s", o.Phase)
				}
				res, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: `cat f; printf %s "$A"`})
				if err != nil || string(res.Stdout) != "contentb" {
					t.Errorf("inside: %q, %v", res.Stdout, err)
				}
				objs, err := vendor.At(dirOf(cfg)).Objects()
				must(t, err)
				if len(objs) != 1 {
					t.Errorf("%d objects, want 1", len(objs))
				}
			})
		}
	}
}

func TestReadinessFollowsTheScript(t *testing.T) {
	t.Parallel()
	b, cfg := opened(t, saasstub.New())
	script(t, cfg, saasstub.Script{Rules: []saasstub.Rule{
		{Op: vendor.OpStart, Do: vendor.DoSlowReady, Delay: vendor.Duration(300 * time.Millisecond), Name: "slow"},
		{Op: vendor.OpStart, Do: vendor.DoFailReady, Delay: vendor.Duration(100 * time.Millisecond), Name: "failing"},
	}})
	named := func(name string) extensions.Spec {
		return exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Name = name }))
	}
	slow := named("slow")
	h, o, err := b.Provision(t.Context(), slow)
	must(t, err)
	if o.Phase != extensions.PhaseProvisioning {
		t.Errorf("at once it is %s", o.Phase)
	}
	_, err = b.WaitReady(t.Context(), slow, h)
	must(t, err)

	failing := named("failing")
	h, _, err = b.Provision(t.Context(), failing)
	must(t, err)
	if _, err := b.WaitReady(t.Context(), failing, h); !extensions.IsKind(err, extensions.KindInternal) {
		t.Errorf("waiting for what fails: %v", err)
	}
	all, err := b.Status(t.Context(), []extensions.Handle{h})
	must(t, err)
	if all[0].Phase != extensions.PhaseFailed || all[0].EndedAt.IsZero() {
		t.Errorf("it is %s, ended %s", all[0].Phase, all[0].EndedAt)
	}
}

func TestAnEventualLookUpIsLateAndSaysSo(t *testing.T) {
	t.Parallel()
	b, cfg := opened(t, saasstub.NewEventual())
	spec := exttest.Spec(t, cfg)
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if _, err := b.Find(t.Context(), spec.ID); !extensions.IsKind(err, extensions.KindIndeterminate) {
		t.Errorf("find of what was just made: %v", err)
	}
	all, err := b.Status(t.Context(), nil)
	must(t, err)
	if len(all) != 0 {
		t.Errorf("the list shows %d at once", len(all))
	}
	must(t, vendor.At(dirOf(cfg)).Advance(saasstub.Lag))
	found, err := b.Find(t.Context(), spec.ID)
	must(t, err)
	if found.Encode() != h.Encode() {
		t.Errorf("found %s, want %s", found.Encode(), h.Encode())
	}
}

func TestAListCanShowGhosts(t *testing.T) {
	t.Parallel()
	b, cfg := opened(t, saasstub.New())
	script(t, cfg, saasstub.Script{Ghosts: vendor.Duration(time.Minute)})
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
	must(t, err)
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	all, err := b.Status(t.Context(), nil)
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("the list shows %d, want the ghost", len(all))
	}
	r, err := b.Teardown(t.Context(), all[0].Handle)
	must(t, err)
	if !r.AlreadyGone {
		t.Error("a ghost was torn down as if it lived")
	}
}

func TestConfigIsCheckedAtOpen(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]extensions.Config{
		"unknown key":     {Values: map[string]any{"dirr": "x"}},
		"no folder":       {},
		"unknown region":  {Values: map[string]any{"dir": "x", "region": "mars"}},
		"lag above limit": {Values: map[string]any{"dir": "x", "lag": "1h"}},
	} {
		if _, err := saasstub.NewEventual().Open(t.Context(), cfg); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
