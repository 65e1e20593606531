package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/grpctest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

// A vendor whose answer to a snapshot is lost is asked for it again: it makes no second one, and what it made is known.
func TestALostAnswerToASnapshotLeavesNothingThatNobodyKnows(t *testing.T) {
	t.Parallel()
	takesLong(t)
	vendors := []string{"daytona", "e2b", "modal", "vercel"}
	profiles := map[string]string{}
	for _, v := range vendors {
		profiles[v] = "extension: ext." + v + "\n" + denied
	}
	m := newMarket(t, profiles)
	m.daytona.Inject(daytonatest.Fault{On: "POST /sandbox/{sandboxIdOrName}/snapshot", When: daytonatest.After})
	m.e2b.Inject(e2btest.Fault{On: "POST /sandboxes/{sandboxID}/snapshots", When: e2btest.After})
	m.modal.Inject(grpctest.Fault{On: "TaskSnapshotFilesystem", When: grpctest.After})
	m.vercel.Inject(verceltest.Fault{On: "POST /v2/sandboxes/sessions/{sessionId}/snapshot", When: verceltest.After})
	made := map[string]func() int{
		"daytona": func() int { return len(m.daytona.Snapshots()) },
		"e2b":     func() int { return len(m.e2b.Snapshots()) },
		"modal":   func() int { return len(m.modal.Snapshots()) },
		"vercel":  func() int { return len(m.vercel.Snapshots()) },
	}
	for _, v := range vendors {
		s := m.create(engine.Request{Profile: "profile." + v, Name: v})
		kept, err := m.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{AllowEnd: v == "vercel", Retention: "1h"})
		if err != nil || made[v]() != 1 {
			t.Errorf("%s: %v; it has %d", v, err, made[v]())
		}
		if err == nil {
			if _, err := m.DeleteSnapshot(t.Context(), kept, false); err != nil || made[v]() != 0 {
				t.Errorf("%s: %v; it still has %d", v, err, made[v]())
			}
		}
		if v != "vercel" {
			m.end(s)
		}
	}
}

// Once nothing is found of it, the outcome of a snapshot is known.
func TestASnapshotOfWhichNothingIsFoundHasAKnownOutcome(t *testing.T) {
	t.Parallel()
	lost := extensions.Errorf(extensions.KindIndeterminate, "lost")
	lost.RetryAfter = time.Hour // nobody waits that long
	x := &hooked{does: func(c *calls, _ extensions.Config) {
		c.Snapshot = func(context.Context, extensions.Handle, extensions.SnapshotSpec) (extensions.Snapshot, error) {
			return extensions.Snapshot{}, lost
		}
	}}
	b := newBench(t, having(x))
	s := b.create(engine.Request{Name: "one"})
	v, err := b.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{})
	if !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" || v.ID != "" {
		t.Errorf("%+v, %s", v, told(err))
	}
	b.end(s)
	b.clean()

	e := newEnders(t)
	s = e.create(engine.Request{Name: "one"})
	e.before = func() error { return lost }
	v, err = e.Snapshot(t.Context(), s.Receipt, permitted)
	if !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" || v.ID != "" {
		t.Errorf("%+v, %s", v, told(err))
	}
	e.end(s)
	e.clean()
}
