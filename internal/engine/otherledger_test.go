package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
)

func (b *bench) notes() []string {
	b.t.Helper()
	files, err := filepath.Glob(filepath.Join(b.StateDir, "unsettled", "*.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	return files
}

func TestADestroyWithAnotherLedgerIsSettledInItsOwn(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.grant(100 * dollar)
		s := b.create(engine.Request{Name: "one", TTL: "2h"})
		b.later(20 * time.Minute)
		e := b.elsewhere()
		r, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
		if err != nil || len(b.alive()) != 0 {
			t.Fatal(told(err), b.alive())
		}
		if text := notices(r.Notices); !strings.Contains(text, "does not know it") || !strings.Contains(text, s.Receipt.Ledger) ||
			len(b.notes()) != 1 {
			t.Errorf("told %q, noted %v", text, b.notes())
		}
		b.later(time.Hour)
		if again, err := b.elsewhere().Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || !again.AlreadyGone {
			t.Errorf("destroyed again: %+v, %v", again, err)
		}
		if _, err := b.elsewhere().Sweep(t.Context(), false, nil); err != nil || len(b.notes()) != 1 {
			t.Errorf("a third ledger took it: %v, %v", err, b.notes())
		}
		// Any change settles it first.
		if _, err := b.reopen().SetBudget(t.Context(), engine.BudgetSpec{Name: "month", Limit: "5 USD"}); err != nil {
			t.Fatal(told(err))
		}
		m := b.meter(s.ID)
		if m.EndEstimated || m.ClosedAt.Sub(r.EndedAt).Abs() > time.Millisecond || len(b.notes()) != 0 {
			t.Errorf("closed %s, estimated %t, ended %s; noted %v", m.ClosedAt, m.EndEstimated, r.EndedAt, b.notes())
		}
		if w := b.balance(ledger.AccountWallet); w.DebitsPending != 0 || w.DebitsPosted < dollar/3 || w.DebitsPosted > dollar/3+dollar/100 {
			t.Errorf("paid for 20 minutes of a dollar an hour: %+v", w)
		}
	})
}

func TestANoteOfWhatIsSettledDoesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		s := b.create(engine.Request{Name: "one", TTL: "2h"})
		r, err := b.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
		if err != nil {
			t.Fatal(told(err))
		}
		b.later(time.Hour)
		if _, err := b.elsewhere().Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || len(b.notes()) != 1 {
			t.Fatal(told(err), b.notes())
		}
		if _, err := b.reopen().Sweep(t.Context(), false, nil); err != nil {
			t.Fatal(told(err))
		}
		if m := b.meter(s.ID); !m.ClosedAt.Equal(r.EndedAt.Truncate(time.Microsecond)) || m.EndEstimated || len(b.notes()) != 0 {
			t.Errorf("closed %s, estimated %t, ended %s; noted %v", m.ClosedAt, m.EndEstimated, r.EndedAt, b.notes())
		}
	})
}

// Another ledger knows no more of a sandbox than its receipt: when it was ready.
// Its own one knows when it was seen since.
func TestAnEstimateOfAnotherLedgerIsNoEarlierThanTheOwnOneSawIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	s := b.create(engine.Request{Profile: "profile.quickstart", Name: "one", TTL: "2h"})
	at := func(after time.Duration) *engine.Engine {
		b.Now = func() time.Time { return s.CreatedAt.Add(after) }
		return b.reopen()
	}
	if _, err := at(20*time.Minute).Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"true"}}); err != nil {
		t.Fatal(told(err))
	}
	b.removed(local.New())
	b.Now = func() time.Time { return s.CreatedAt.Add(30 * time.Minute) }
	other := b.elsewhere()
	if r, err := other.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || !r.AlreadyGone {
		t.Fatalf("%+v, %s", r, told(err))
	}
	if r, err := at(40*time.Minute).Sweep(ctx, false, nil); err != nil || len(r.Settled) != 1 {
		t.Fatalf("%+v, %s", r, told(err))
	}
	if m := b.meters(s.ID); len(m) != 1 || !m[0].EndEstimated || m[0].EndSource != "seen-alive" ||
		m[0].ClosedAt.Sub(s.CreatedAt.Add(20*time.Minute)).Abs() > time.Second {
		t.Errorf("%+v, made %s", m, s.CreatedAt)
	}
	b.clean()
}

// Where the note is, another machine's ledger cannot know: it finds it gone.
func TestADestroyFromAnotherFolderIsSettledUpToWhenItWasFoundGone(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		s := b.create(engine.Request{Name: "one", TTL: "2h"})
		b.later(20 * time.Minute)
		if _, err := b.elsewhere(onMachine(t.TempDir())).Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil ||
			len(b.alive()) != 0 {
			t.Fatal(told(err), b.alive())
		}
		e := b.later(10 * time.Minute)
		if r, err := e.Sweep(t.Context(), false, nil); err != nil || len(r.Settled) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		m := b.meter(s.ID)
		late := m.ClosedAt.Sub(s.CreatedAt.Add(30 * time.Minute))
		if !m.EndEstimated || late < -time.Second || late > time.Since(s.CreatedAt)+time.Second {
			t.Errorf("closed %s, estimated %t, made %s", m.ClosedAt, m.EndEstimated, s.CreatedAt)
		}
		u, err := e.Usage(t.Context(), engine.UsageQuery{})
		if err != nil || len(u.Totals) != 1 || u.Totals[0].Estimated != 1 {
			t.Errorf("%+v, %v", u.Totals, err)
		}
	})
}

// The state of one that is gone tells no longer which life it had, and which
// ledger knows it.
func TestAnEndIsNotedWithoutAReceiptToo(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, b *bench) {
		s := b.create(engine.Request{Name: "one", TTL: "2h"})
		rec := s.Receipt
		bare := engine.Receipt{Version: 1, ID: rec.ID, Account: rec.Account, Name: rec.Name, Extension: rec.Extension, Handle: rec.Handle,
			CreatedAt: rec.CreatedAt, ExpiresAt: rec.ExpiresAt}
		r, err := b.elsewhere().Destroy(t.Context(), bare, engine.DestroyOptions{})
		if err != nil || len(b.notes()) != 1 {
			t.Fatal(told(err), b.notes())
		}
		b.later(time.Hour)
		for _, dry := range []bool{true, false} {
			if r, err := b.reopen().Sweep(t.Context(), dry, nil); err != nil || len(r.Settled) != 1 || r.Settled[0] != s.ID ||
				len(r.Ended)+len(r.Failures) > 0 {
				t.Errorf("swept, dry %t: %+v, %v", dry, r, err)
			}
		}
		if m := b.meter(s.ID); m.EndEstimated || m.ClosedAt.Sub(r.EndedAt).Abs() > time.Millisecond || len(b.notes()) != 0 {
			t.Errorf("closed %s, estimated %t, ended %s; noted %v", m.ClosedAt, m.EndEstimated, r.EndedAt, b.notes())
		}
	})
}

// The next run goes on with what a killed one left, and settles it once.
func TestAKillWhileANoteIsTakenDownSettlesItOnce(t *testing.T) {
	t.Parallel()
	killing(t)
	onBoth(t, nil, func(t *testing.T, b *bench) {
		kills := 0
		for _, point := range []string{"ledger.begin", "ledger.intent.open", "ledger.meter.close", "ledger.charge", "ledger.commit",
			"ledger.committed"} {
			s := b.create(engine.Request{Name: point, TTL: "2h"})
			r, err := b.elsewhere().Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
			if err != nil {
				t.Fatal(told(err))
			}
			for nth := 1; ; nth++ {
				_, stderr, code := b.run(order{Do: "sweep"}, fmt.Sprintf("%s=%s@%d:kill", failpointtest.Env, point, nth), 0)
				if strings.Contains(stderr, "panic") {
					t.Fatal(stderr)
				}
				if code == 0 {
					break
				}
				kills++
			}
			if m := b.meter(s.ID); m.EndEstimated || m.ClosedAt.Sub(r.EndedAt).Abs() > time.Millisecond || len(b.notes()) != 0 {
				t.Errorf("%s: closed %s, estimated %t, ended %s; noted %v", point, m.ClosedAt, m.EndEstimated, r.EndedAt, b.notes())
			}
		}
		if kills < 6 {
			t.Errorf("only %d were killed", kills)
		}
	})
}

// Whoever is killed after the end and before its note leaves an end that nobody
// tells: the next destroy bounds it from above.
func TestAKillBeforeTheNoteLeavesAnEstimate(t *testing.T) {
	t.Parallel()
	killing(t)
	onBoth(t, nil, func(t *testing.T, b *bench) {
		s := b.create(engine.Request{Name: "one", TTL: "2h"})
		b.killed(order{Do: "destroy", Receipt: s.Receipt, Ledger: sqlstore.DefaultURL(t.TempDir())}, "engine.destroy.torn")
		if len(b.alive()) != 0 || len(b.notes()) != 0 {
			t.Fatalf("%v live, noted %v", b.alive(), b.notes())
		}
		b.later(20 * time.Minute)
		if r, err := b.elsewhere().Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || !r.AlreadyGone ||
			len(b.notes()) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, err := b.reopen().Sweep(t.Context(), false, nil); err != nil {
			t.Fatal(told(err))
		}
		m := b.meter(s.ID)
		off := m.ClosedAt.Sub(s.CreatedAt.Add(20 * time.Minute)).Abs()
		if !m.EndEstimated || off > time.Since(s.CreatedAt)+time.Second || len(b.notes()) != 0 {
			t.Errorf("closed %s, estimated %t; noted %v", m.ClosedAt, m.EndEstimated, b.notes())
		}
	})
}

func TestANoteThatIsNoneIsLeftAndTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := filepath.Join(b.StateDir, "unsettled")
	id, err := extensions.NewID(nil)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, string(id)+".json"), []byte("{"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []engine.Notice
	if _, err := b.Sweep(t.Context(), false, func(n engine.Notice) { all = append(all, n) }); err != nil ||
		!strings.Contains(notices(all), string(id)) {
		t.Errorf("%v, told %s", err, notices(all))
	}
}
