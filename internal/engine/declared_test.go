package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const trialBinding = "id: ext.trial\nhandler: saas-stub\nconfig: { plan: trial }\n"

// One handler bound twice is two declarations: every decision about a binding
// reads its own.
func TestOneHandlerBoundTwiceDeclaresTwice(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"extensions/ext.trial.yaml":   trialBinding,
		"profiles/profile.trial.yaml": "id: profile.trial\nversion: \"1.0.0\"\nextension: ext.trial\n" + common,
		"profiles/profile.full.yaml":  "id: profile.full\nversion: \"1.0.0\"\nextension: ext.saas-stub\n" + common,
		"extensions/ext.stub.yaml":    "id: ext.saas-stub\nhandler: saas-stub\n",
	})
	e, err := engine.New(engine.Options{Extensions: all(), StateDir: t.TempDir(), Account: "acme/web", Catalog: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx := t.Context()
	request := func(profile, ttl string) engine.Request {
		return engine.Request{Profile: "profile." + profile, Name: profile, TTL: ttl}
	}
	if _, err := e.Plan(ctx, request("full", "2h")); err != nil {
		t.Errorf("the full plan: %s", told(err))
	}
	_, err = e.Plan(ctx, request("trial", "2h"))
	if text := told(err); !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(text, "maximum of 1h") {
		t.Errorf("the trial plan takes 2h: %s", text)
	}
	for profile, keeps := range map[string]bool{"full": true, "trial": false} {
		s, err := e.Create(ctx, request(profile, "30m"), nil, nil)
		if err != nil {
			t.Fatalf("%s: %s", profile, told(err))
		}
		longer := request(profile, "3h")
		if _, err := e.PlanUpdate(ctx, s.Receipt, s.Request, longer); (err == nil) != keeps ||
			err != nil && !strings.Contains(err.Error(), "1h") {
			t.Errorf("%s: a ttl of 3h: %v", profile, told(err))
		}
		shorter := request(profile, "10m")
		if _, err := e.PlanUpdate(ctx, s.Receipt, s.Request, shorter); (err == nil) != keeps ||
			err != nil && (!extensions.IsKind(err, extensions.KindUnsupported) || extensions.FieldOf(err) != "ttl") {
			t.Errorf("%s: planning a ttl of 10m: %v", profile, told(err))
		}
		if _, err := e.Update(ctx, s.Receipt, shorter, nil); (err == nil) != keeps {
			t.Errorf("%s: a ttl of 10m: %v", profile, told(err))
		}
		snap, err := e.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "kept"})
		if (err == nil) != keeps {
			t.Errorf("%s: a snapshot: %v", profile, told(err))
		}
		if err == nil {
			_, err = e.DeleteSnapshot(ctx, snap, false)
		} else if extensions.IsKind(err, extensions.KindUnsupported) && strings.Contains(err.Error(), "ext.trial") {
			err = nil
		}
		if err != nil {
			t.Errorf("%s: %s", profile, told(err))
		}
		if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(told(err))
		}
	}
}

// A catalog that takes the moving of deadlines away takes the power with it.
func TestABindingWithoutMovableDeadlinesRefusesAnotherTTL(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"extensions/ext.fixed.yaml":   "id: ext.fixed\nhandler: saas-stub\ncapabilities: { extend_ttl: none }\n",
		"profiles/profile.fixed.yaml": "id: profile.fixed\nversion: \"1.0.0\"\nextension: ext.fixed\n" + common,
	})
	e, err := engine.New(engine.Options{Extensions: all(), StateDir: t.TempDir(), Account: "acme/web", Catalog: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.Create(t.Context(), engine.Request{Profile: "profile.fixed", Name: "one", TTL: "30m"}, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	longer := engine.Request{Profile: "profile.fixed", Name: "one", TTL: "1h"}
	if _, err := e.PlanUpdate(t.Context(), s.Receipt, s.Request, longer); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("a plan moves the deadline: %v", told(err))
	}
	if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(told(err))
	}
}

// What others added to a deadline stays, where one only moves later, too: so a smaller ttl than that is no earlier end. A run that was
// killed once it had moved the deadline is such another; a state has times in whole seconds.
func TestADeadlineThatMovedAlreadyAllowsASmallerTTLThatGrew(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"extensions/ext.later.yaml":   "id: ext.later\nhandler: saas-stub\ncapabilities: { extend_ttl: later }\n",
		"profiles/profile.later.yaml": "id: profile.later\nversion: \"1.0.0\"\nextension: ext.later\n" + common,
	})
	e, err := engine.New(engine.Options{Extensions: all(), StateDir: t.TempDir(), Account: "acme/web", Catalog: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	request := func(ttl string) engine.Request {
		return engine.Request{Profile: "profile.later", Name: "one", TTL: ttl}
	}
	s, err := e.Create(t.Context(), request("30m"), nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	moved, err := e.ExtendTTL(t.Context(), s.Receipt, 40*time.Minute)
	if err != nil {
		t.Fatal(told(err))
	}
	rec := moved.Receipt
	rec.CreatedAt = rec.CreatedAt.Truncate(time.Second).Add(-time.Nanosecond)
	for _, ttl := range []string{"40m", "35m"} {
		if _, err := e.PlanUpdate(t.Context(), rec, request("30m"), request(ttl)); err != nil {
			t.Errorf("planning a ttl of %s: %s", ttl, told(err))
		}
	}
	if _, err := e.PlanUpdate(t.Context(), rec, request("30m"), request("20m")); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("planning a ttl of 20m: %s", told(err))
	}
	after, err := e.Update(t.Context(), rec, request("35m"), nil)
	if err != nil || !after.ExpiresAt.Equal(moved.ExpiresAt) {
		t.Errorf("a ttl of 35m: %s in place of %s, %s", after.ExpiresAt, moved.ExpiresAt, told(err))
	}
	if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(told(err))
	}
}
