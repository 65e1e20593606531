package engine_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// noted makes a sandbox and ends it where its ledger does not hear of it.
func (b *bench) noted(name string) (engine.Sandbox, engine.DestroyReport) {
	b.t.Helper()
	s := b.make(b.reopen(), engine.Request{Name: name, TTL: "2h"})
	r, err := b.elsewhere().Destroy(b.t.Context(), s.Receipt, engine.DestroyOptions{})
	if err != nil || !slices.ContainsFunc(b.notes(), func(f string) bool { return strings.Contains(f, string(s.ID)) }) {
		b.t.Fatal(told(err), b.notes())
	}
	return s, r
}

// settledOnce demands that s was settled once, at the end that r tells.
func (b *bench) settledOnce(s engine.Sandbox, r engine.DestroyReport) {
	b.t.Helper()
	ctx := b.t.Context()
	row, err := b.book().Get(ctx, s.ID)
	if err != nil || row.State != lifecycle.Destroyed {
		b.t.Fatalf("it is %s, %v", row.State, err)
	}
	m := b.meter(s.ID)
	cs, err := b.book().Charges(ctx, s.ID)
	if err != nil || len(cs) != 1 || m.EndEstimated || m.ClosedAt.Sub(r.EndedAt).Abs() > time.Millisecond || b.held(s.ID) != 0 {
		b.t.Errorf("closed %s, estimated %t, ended %s, charged %+v, held %d: %v", m.ClosedAt, m.EndEstimated, r.EndedAt, cs, b.held(s.ID), err)
	}
	events, err := b.reopen().Events(ctx, string(s.ID), 0)
	ended := 0
	for _, ev := range events {
		if ev.Type == "sandbox.destroyed" {
			ended++
		}
	}
	if err != nil || ended != 1 {
		b.t.Errorf("it ended %d times: %v", ended, err)
	}
}

func TestEveryRunThatChangesSomethingSettlesWhatIsNoted(t *testing.T) {
	t.Parallel()
	takesLong(t)
	here := engine.Host{Name: "here", Local: true}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(hook.Close)
	onBoth(t, nil, func(t *testing.T, b *bench) {
		ctx := t.Context()
		lives := b.create(engine.Request{Name: "lives", TTL: "2h"})
		ends := b.create(engine.Request{Name: "ends", TTL: "2h"})
		if _, err := b.RegisterHost(ctx, here, ""); err != nil {
			t.Fatal(told(err))
		}
		longer := engine.Request{Profile: "profile.mine", Name: "lives", TTL: "3h"}
		var snap engine.SnapshotView
		for _, c := range []struct {
			name string
			do   func(e *engine.Engine) error
		}{
			{"create", func(e *engine.Engine) error {
				_, err := e.Create(ctx, engine.Request{Profile: "profile.mine", Name: "new", TTL: "1h"}, nil, nil)
				return err
			}},
			{"destroy", func(e *engine.Engine) error {
				_, err := e.Destroy(ctx, ends.Receipt, engine.DestroyOptions{})
				return err
			}},
			{"update", func(e *engine.Engine) error { _, err := e.Update(ctx, lives.Receipt, longer, nil); return err }},
			{"extend", func(e *engine.Engine) error { _, err := e.ExtendTTL(ctx, lives.Receipt, 4*time.Hour); return err }},
			{"snapshot", func(e *engine.Engine) (err error) {
				snap, err = e.Snapshot(ctx, lives.Receipt, engine.SnapshotRequest{Name: "kept"})
				return err
			}},
			{"delete a snapshot", func(e *engine.Engine) error { _, err := e.DeleteSnapshot(ctx, snap, false); return err }},
			{"recreate", func(e *engine.Engine) error { _, err := e.Recreate(ctx, lives.Receipt, nil, nil); return err }},
			{"sweep", func(e *engine.Engine) error { _, err := e.Sweep(ctx, false, nil); return err }},
			{"recover", func(e *engine.Engine) error { return e.Recover(ctx, nil) }},
			{"grant", func(e *engine.Engine) error { _, _, err := e.GrantCredit(ctx, "acme", "5 USD", "", ""); return err }},
			{"set a budget", func(e *engine.Engine) error {
				_, err := e.SetBudget(ctx, engine.BudgetSpec{Name: "month", Limit: "500 USD"})
				return err
			}},
			{"remove a budget", func(e *engine.Engine) error { _, err := e.RemoveBudget(ctx, false, "month", ""); return err }},
			{"register a host", func(e *engine.Engine) error { _, err := e.RegisterHost(ctx, here, here.Ref()); return err }},
			{"forget a host", func(e *engine.Engine) error { return e.ForgetHost(ctx, here.Name, here.Ref(), false) }},
			{"send events", func(e *engine.Engine) error {
				_, err := e.SendEvents(ctx, engine.Receiver{Name: "hook", URL: hook.URL})
				return err
			}},
		} {
			s, r := b.noted(strings.ReplaceAll("over "+c.name, " ", "-"))
			if err := c.do(b.reopen()); err != nil {
				t.Errorf("%s: %s", c.name, told(err))
			}
			if left := b.notes(); len(left) != 0 {
				t.Errorf("%s: noted %v", c.name, left)
				continue
			}
			b.settledOnce(s, r)
		}
	})
}

func TestNoRunThatOnlyReadsSettlesWhatIsNoted(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		ctx := t.Context()
		lives := b.create(engine.Request{Name: "lives", TTL: "2h"})
		over, r := b.noted("over")
		again := engine.Request{Profile: "profile.mine", Name: "another", TTL: "1h"}
		longer := lives.Request
		longer.TTL = "3h"
		for name, read := range map[string]func(e *engine.Engine) error{
			"plan": func(e *engine.Engine) error { _, err := e.Plan(ctx, again); return err },
			"quote": func(e *engine.Engine) error {
				_, err := e.Quote(ctx, again, engine.QuoteOptions{History: true})
				return err
			},
			"plan a change": func(e *engine.Engine) error {
				_, err := e.PlanUpdate(ctx, lives.Receipt, lives.Request, longer)
				return err
			},
			"refresh": func(e *engine.Engine) error { _, err := e.Get(ctx, lives.Receipt); return err },
			"look up": func(e *engine.Engine) error { _, err := e.Lookup(ctx, over.ID, "", ""); return err },
			"list":    func(e *engine.Engine) error { _, err := e.List(ctx, true); return err },
			"account": func(e *engine.Engine) error { _, err := e.AccountView(ctx); return err },
			"budgets": func(e *engine.Engine) error { _, err := e.Budgets(ctx); return err },
			"usage":   func(e *engine.Engine) error { _, err := e.Usage(ctx, engine.UsageQuery{}); return err },
			"charges": func(e *engine.Engine) error { _, err := e.Charges(ctx, over.ID); return err },
			"events":  func(e *engine.Engine) error { _, err := e.Events(ctx, string(over.ID), 0); return err },
			"export": func(e *engine.Engine) error {
				_, err := e.ExportEvents(ctx, engine.ExportQuery{}, io.Discard)
				return err
			},
			"verify":      func(e *engine.Engine) error { _, err := e.Verify(ctx, engine.Evidence{}); return err },
			"a dry sweep": func(e *engine.Engine) error { _, err := e.Sweep(ctx, true, nil); return err },
		} {
			if err := read(b.reopen()); err != nil {
				t.Errorf("%s: %s", name, told(err))
			}
			row, err := b.book().Get(ctx, over.ID)
			if err != nil || row.State != lifecycle.Ready || len(b.notes()) != 1 {
				t.Fatalf("%s: it is %s, noted %v: %v", name, row.State, b.notes(), err)
			}
		}
		if _, err := b.reopen().Sweep(ctx, false, nil); err != nil || len(b.notes()) != 0 {
			t.Error(told(err), b.notes())
		}
		b.settledOnce(over, r)
	})
}

// Each of several runs that find a note settles it, and it is settled once.
func TestRunsThatSettleTheSameNoteAtOnceSettleItOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		for round := range 3 {
			s, r := b.noted("over")
			var told []engine.Notice
			var mu sync.Mutex
			notify := func(n engine.Notice) { mu.Lock(); told = append(told, n); mu.Unlock() }
			inside, others := make(chan struct{}), make(chan struct{})
			once := sync.OnceFunc(func() { close(inside) })
			// The first one is in the middle of settling it when the others find it.
			ctx := failpointtest.Inject(t.Context(), "ledger.meter.close", func() error { once(); <-others; return nil })
			var wg sync.WaitGroup
			again := func(ctx context.Context) {
				e := b.reopen()
				wg.Go(func() {
					if err := e.Recover(ctx, notify); err != nil {
						t.Error(err)
					}
				})
			}
			again(ctx)
			select {
			case <-inside:
			case <-time.After(time.Minute):
				t.Fatal("the note was not found")
			}
			for range 3 {
				again(t.Context())
			}
			time.Sleep(time.Duration(round) * 50 * time.Millisecond)
			close(others)
			wg.Wait()
			if len(b.notes()) != 0 || strings.Contains(notices(told), "could not be settled") {
				t.Errorf("noted %v, told %s", b.notes(), notices(told))
			}
			b.settledOnce(s, r)
		}
	})
}

// The note has its name when it is whole, and not before.
func TestAKillWhileAnEndIsNotedLeavesAnEstimate(t *testing.T) {
	t.Parallel()
	killing(t)
	onBoth(t, nil, func(t *testing.T, b *bench) {
		s := b.create(engine.Request{Name: "one", TTL: "2h"})
		b.killed(order{Do: "destroy", Receipt: s.Receipt, Ledger: sqlstore.DefaultURL(t.TempDir())}, "engine.note.written")
		if len(b.alive()) != 0 || len(b.notes()) != 0 {
			t.Fatalf("%v live, noted %v", b.alive(), b.notes())
		}
		b.later(20 * time.Minute)
		var told []engine.Notice
		if _, err := b.reopen().Sweep(t.Context(), false, func(n engine.Notice) { told = append(told, n) }); err != nil {
			t.Fatal(err)
		}
		b.estimated(s, notices(told))
		if left, err := filepath.Glob(filepath.Join(b.StateDir, "spool", "*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

// What cannot be noted is told, and settled by who finds it gone.
func TestAnEndThatCannotBeNotedIsEstimated(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		s := b.create(engine.Request{Name: "one", TTL: "2h"})
		if err := os.WriteFile(filepath.Join(b.StateDir, "unsettled"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b.later(10 * time.Minute)
		r, err := b.elsewhere().Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
		if err != nil || len(b.alive()) != 0 || !strings.Contains(notices(r.Notices), "estimated end") ||
			!strings.Contains(notices(r.Notices), "could not be noted") {
			t.Fatalf("%s, %v live, told %s", told(err), b.alive(), notices(r.Notices))
		}
		b.later(10 * time.Minute)
		var all []engine.Notice
		if _, err := b.reopen().Sweep(t.Context(), false, func(n engine.Notice) { all = append(all, n) }); err != nil {
			t.Fatal(told(err))
		}
		b.estimated(s, notices(all))
	})
}

// estimated demands that s was settled at an end that is told and marked as an
// estimate, 20 minutes after it was made.
func (b *bench) estimated(s engine.Sandbox, told string) {
	b.t.Helper()
	m := b.meter(s.ID)
	earliest, latest := s.CreatedAt.Add(20*time.Minute-time.Second), time.Now().Add(20*time.Minute+time.Second)
	if !m.EndEstimated || m.ClosedAt.Before(earliest) || m.ClosedAt.After(latest) || !strings.Contains(told, "Its end is an estimate") {
		b.t.Errorf("closed %s, estimated %t, made %s; told %s", m.ClosedAt, m.EndEstimated, s.CreatedAt, told)
	}
	u, err := b.reopen().Usage(b.t.Context(), engine.UsageQuery{})
	if err != nil || len(u.Totals) != 1 || u.Totals[0].Estimated != 1 {
		b.t.Errorf("usage: %+v, %v", u.Totals, err)
	}
}

// A receipt of a former life tells nothing of the end of the one after it.
func TestAnOlderLifesEndLeavesTheNoteOfALaterOne(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		ctx := t.Context()
		s := b.create(engine.Request{Name: "one", TTL: "2h"})
		former := s.Receipt
		s, err := b.reopen().Recreate(ctx, s.Receipt, nil, nil)
		if err != nil {
			t.Fatal(told(err))
		}
		stopped := errors.New("stopped")
		down := failpointtest.Inject(ctx, "ledger.begin", func() error { return stopped })
		r, err := b.reopen().Destroy(down, s.Receipt, engine.DestroyOptions{})
		if err != nil || len(b.notes()) != 1 {
			t.Fatal(told(err), b.notes())
		}
		b.later(10 * time.Minute)
		if _, err := b.elsewhere().Destroy(ctx, former, engine.DestroyOptions{}); err != nil {
			t.Fatal(told(err))
		}
		if _, err := b.reopen().Sweep(ctx, false, nil); err != nil {
			t.Fatal(told(err))
		}
		ms, err := b.book().Meters(ctx, s.ID)
		if err != nil || len(ms) != 2 || ms[1].EndEstimated || ms[1].ClosedAt.Sub(r.EndedAt).Abs() > time.Millisecond {
			t.Errorf("it ended %s: %+v, %v", r.EndedAt, ms, err)
		}
	})
}

// The note is its owner's alone, and whole.
func TestANotedEndIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	m := newOffline(t)
	ctx := context.Background()
	s := m.create(own)
	m.cut.Off()
	r, err := m.reopen().Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if err != nil || len(m.left()) > 0 || !strings.Contains(notices(r.Notices), "not settled") {
		t.Fatalf("%+v, %s", r, told(err))
	}
	info, err := os.Stat(filepath.Join(m.StateDir, "unsettled", string(s.ID)+".json"))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := m.reopen().Sweep(ctx, false, nil); !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Errorf("swept without the ledger: %v", err)
	}
	m.cut.On()
	back := m.reopen()
	if _, err := back.Sweep(ctx, false, nil); err != nil {
		t.Fatal(told(err))
	}
	row, err := back.Lookup(ctx, s.ID, "", "")
	if err != nil || row.State != "destroyed" || row.EndedAt.Sub(r.EndedAt).Abs() > time.Millisecond {
		t.Errorf("%s at %s, it ended %s: %v", row.State, row.EndedAt, r.EndedAt, err)
	}
	if left, err := filepath.Glob(filepath.Join(m.StateDir, "unsettled", "*")); err != nil || len(left) > 0 {
		t.Errorf("noted: %v, %v", left, err)
	}
	m.sound(true)
}
