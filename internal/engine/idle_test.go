package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// A sandbox that nobody uses ends before its deadline, and is settled at that time by whoever comes by: a sweep, its
// owner, or one who wants its name.
func TestAnIdleSandboxEndsAndIsSettledAtThatTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, onFiles(map[string]string{
		"profiles/a.yaml":           "id: profile.idle\nversion: \"1.0.0\"\nextends: profile.stub\nttl: { idle_reap: 5m }\n",
		"profiles/b.yaml":           "id: profile.there\nversion: \"1.0.0\"\nextension: ext.never\nisolation: { level: container }\nttl: { idle_reap: 5m }\n",
		"extensions/ext.never.yaml": "id: ext.never\ntitle: Never\nhandler: saas-stub\ncapabilities: { idle_reap: none }\n",
	}))
	ctx := t.Context()
	if _, err := b.Create(ctx, engine.Request{Profile: "profile.there"}, nil, nil); !extensions.IsKind(err, extensions.KindUnsupported) ||
		!strings.Contains(err.Error(), "viability.idle-reap") {
		t.Errorf("where nobody ends it: %v", err)
	}
	made := map[string]engine.Sandbox{}
	for _, name := range []string{"swept", "destroyed", "taken", "used"} {
		made[name] = b.create(engine.Request{Profile: "profile.idle", Name: name})
	}
	v, now := vendor.At(b.vendor), time.Duration(0)
	e := b.reopen(ahead(func() time.Duration { return now }))
	pass := func(d time.Duration) {
		now += d
		if err := v.Advance(d); err != nil {
			t.Fatal(err)
		}
	}
	pass(3 * time.Minute)
	if got, err := e.Get(ctx, made["used"].Receipt); err != nil || got.IdleReap != 5*time.Minute || got.IdleSince.IsZero() {
		t.Errorf("ends if idle for %s, idle since %s, %v", got.IdleReap, got.IdleSince, err)
	}
	if _, err := e.Exec(ctx, made["used"].Receipt, engine.ExecRequest{Shell: "true"}); err != nil {
		t.Fatal(err)
	}
	pass(3 * time.Minute)
	for name, want := range map[string]string{"swept": "expired", "used": "ready"} {
		if got, err := e.Get(ctx, made[name].Receipt); err != nil || got.State != want || want == "expired" && got.Reason != "it was idle for 5m0s" {
			t.Errorf("%s is %s (%s), %v", name, got.State, got.Reason, err)
		}
	}
	if _, err := e.Destroy(ctx, made["destroyed"].Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(err)
	}
	again, err := e.Create(ctx, engine.Request{Profile: "profile.idle", Name: "taken"}, nil, nil)
	if err != nil {
		t.Error(err)
	}
	if report, err := e.Sweep(ctx, false, nil); err != nil || len(report.Settled) != 1 || len(report.Ended)+len(report.Failures) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	for _, name := range []string{"swept", "destroyed", "taken"} {
		row, err := b.book().Get(ctx, made[name].ID)
		lived := row.EndedAt.Sub(row.CreatedAt)
		if err != nil || row.EndReason != "idle" || row.EndEstimated || lived < 5*time.Minute || lived > 5*time.Minute+30*time.Second {
			t.Errorf("%s ended after %s as %q (estimated: %t), %v", name, lived, row.EndReason, row.EndEstimated, err)
		}
	}
	if got, err := e.Get(ctx, made["swept"].Receipt); err != nil || got.State != "expired" || !strings.HasPrefix(got.Reason, "its idle time") {
		t.Errorf("once settled it is %s (%s), %v", got.State, got.Reason, err)
	}
	b.Engine = e
	b.end(again, made["used"])
	b.clean()
}
