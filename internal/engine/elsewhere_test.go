package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// What another machine runs is no other's to sweep while it lives. Once its
// deadline is well over, it is settled and its name is free, also if that
// machine never comes back.
func TestASandboxOfAMachineThatIsGoneFreesItsName(t *testing.T) {
	t.Parallel()
	takesLong(t)
	onBoth(t, atHome(), func(t *testing.T, b *bench) {
		req := engine.Request{Profile: "profile.own", Name: "e2e", TTL: "15s"}
		s := b.create(req)
		first := b.Engine
		onMachine(t.TempDir())(b)
		swept := func(e *engine.Engine, settled int) {
			t.Helper()
			if r, err := e.Sweep(t.Context(), false, nil); err != nil || len(r.Failures) > 0 || len(r.Settled) != settled || len(r.Ended) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
		}
		swept(b.reopen(), 0)
		e := b.later(s.ExpiresAt.Sub(s.CreatedAt) + time.Minute)
		swept(e, 0)
		_, err := e.Create(t.Context(), req, nil, nil)
		if want := s.ExpiresAt.Add(5 * time.Minute).UTC().Format(time.RFC3339); !extensions.IsKind(err, extensions.KindConflict) ||
			!strings.Contains(told(err), want) {
			t.Errorf("told %q, want %q", told(err), want)
		}
		e = b.later(5 * time.Minute)
		swept(e, 1)
		cs, err := b.book().Charges(t.Context(), s.ID)
		if err != nil || len(cs) != 1 || cs[0].Amount <= 0 || cs[0].Amount > 15*2*dollar/3600 {
			t.Errorf("charged %+v, %v", cs, err)
		}
		again := b.make(e, req)
		if _, err := e.Destroy(t.Context(), again.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(told(err))
		}
		for gone := false; !gone; time.Sleep(100 * time.Millisecond) { // the machine has done so by itself
			r, err := first.Sweep(t.Context(), true, nil)
			gone = err == nil && len(r.Orphans) == 0
		}
	})
}

// Nobody ends a paused sandbox by itself where its place freezes what would: however long its deadline is over, it
// stays on the books until its own machine ends it.
func TestAPausedSandboxOfAnotherMachineIsNotTakenForEnded(t *testing.T) {
	t.Parallel()
	takesLong(t)
	var home string
	freezing := &hooked{handler: "freezing", says: func(d *extensions.Descriptor) {
		d.Places, d.NamedOnly = []extensions.Place{extensions.PlaceMachine}, false
		d.Capabilities.Expiry, d.Capabilities.PausedExpiry = extensions.ExpiryHost, extensions.ExpirySweep
		d.Capabilities.PricingModel, d.Capabilities.CapacityQuery = extensions.PricingSelfHosted, false
	}, does: func(c *calls, cfg extensions.Config) {
		there := func() error {
			if cfg.StateDir == home {
				return nil
			}
			return extensions.Errorf(extensions.KindUnreachable, "it is on another machine: %w", extensions.ErrElsewhere)
		}
		c.onlyThere(there)
	}}
	b := newBench(t, having(freezing), onFiles(map[string]string{
		"extensions/ext.freezing.yaml": "id: ext.freezing\nhandler: freezing\nconfig: { dir: \"$VENDOR\", plan: trial }\n",
		"profiles/t.yaml":              profile("profile.t", "extension: ext.freezing\n"),
	}), func(b *bench) {
		home, b.profile, b.Ledger = b.StateDir, "profile.t", "sqlite://"+b.StateDir+"/shared.db"
	})
	s := b.mode(b.Engine, b.create(engine.Request{Name: "one", TTL: "5m"}), engine.Paused)
	b.later(time.Hour)
	other := b.machine()
	_, err := other.Create(t.Context(), engine.Request{Profile: "profile.t", Name: "one"}, nil, nil)
	if text := told(err); !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(text, "nothing else ends it") {
		t.Errorf("its name on another machine: %s", text)
	}
	if r, err := other.Sweep(t.Context(), false, nil); err != nil || len(r.Failures)+len(r.Settled)+len(r.Ended) > 0 {
		t.Errorf("%+v, %s", r, told(err))
	}
	if there := b.alive(); len(there) != 1 || b.object().State != vendor.StatePaused {
		t.Fatalf("%v are there", there)
	}
	if r, err := b.reopen().Sweep(t.Context(), false, nil); err != nil || len(r.Ended) != 1 || r.Ended[0] != s.ID || len(b.alive()) > 0 {
		t.Errorf("at home: %+v, %s; %v are there", r, told(err), b.alive())
	}
	b.clean()
}

// onlyThere lets there refuse what is asked of, or done to, a sandbox by its handle.
func (c *calls) onlyThere(there func() error) {
	status, teardown := c.Status, c.Teardown
	c.Status = func(ctx context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
		if err := there(); err != nil && hs != nil {
			return nil, err
		}
		return status(ctx, hs)
	}
	c.Teardown = func(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
		if err := there(); err != nil {
			return extensions.CleanupReport{}, err
		}
		return teardown(ctx, h)
	}
}

// What another account of a vendor has lives and costs, and nothing here ends it: it stays on the books, and each sweep tells it,
// until the vendor has ended it at its deadline.
func TestWhatAnotherAccountHasStaysAndIsTold(t *testing.T) {
	t.Parallel()
	takesLong(t)
	var stranger atomic.Bool
	rented := &hooked{handler: "rented", does: func(c *calls, _ extensions.Config) {
		there := func() error {
			if !stranger.Load() {
				return nil
			}
			return extensions.Errorf(extensions.KindUnreachable, "it is in the project of somebody: %w", extensions.ErrElsewhere)
		}
		c.onlyThere(there)
		stat := c.StatSnapshot
		c.StatSnapshot = func(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
			if err := there(); err != nil {
				return extensions.Snapshot{}, err
			}
			return stat(ctx, h)
		}
	}}
	b := newBench(t, having(rented), onFiles(map[string]string{
		"extensions/ext.rented.yaml": "id: ext.rented\nhandler: rented\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/t.yaml":            profile("profile.t", "extension: ext.rented\n"),
	}), func(b *bench) { b.profile = "profile.t" })
	s := b.create(engine.Request{Name: "one", TTL: "5m"})
	snap, err := b.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{Name: "kept"})
	if err != nil {
		t.Fatal(told(err))
	}
	swept := func(e *engine.Engine, settled int, still ...string) {
		t.Helper()
		r, err := e.Sweep(t.Context(), false, nil)
		if err != nil || len(r.Failures) != len(still) || len(r.Settled) != settled || len(r.Ended)+len(r.Snapshots) > 0 {
			t.Errorf("%+v, %s", r, told(err))
		}
		all := strings.Join(r.Failures, "\n")
		for _, id := range still {
			if !strings.Contains(all, id) || !strings.Contains(all, "the project of somebody") {
				t.Errorf("told %q of %s", all, id)
			}
		}
	}
	stranger.Store(true)
	e := b.reopen()
	swept(e, 0, snap.ID, string(s.ID))
	_, err = e.Create(t.Context(), engine.Request{Profile: "profile.t", Name: "one"}, nil, nil)
	if text := told(err); !extensions.IsKind(err, extensions.KindConflict) || strings.Contains(text, "machine") {
		t.Errorf("its name: %s", text)
	}
	if got, err := e.LookupSnapshot(t.Context(), snap.ID); err != nil || got.State != "ready" || len(b.alive()) != 1 {
		t.Errorf("%+v, %s; %v are there", got, told(err), b.alive())
	}
	e = b.later(6 * time.Minute)
	swept(e, 0, snap.ID, string(s.ID))
	_, err = e.Create(t.Context(), engine.Request{Profile: "profile.t", Name: "one"}, nil, nil)
	if text := told(err); !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(text, "account that has it") {
		t.Errorf("its name, once it is overdue: %s", text)
	}
	swept(b.later(5*time.Minute), 1, snap.ID)
	stranger.Store(false)
	if _, err := b.reopen().DeleteSnapshot(t.Context(), snap, false); err != nil {
		t.Error(told(err))
	}
	b.clean()
}
