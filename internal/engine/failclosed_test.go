package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// unwritable are ways in which a ledger cannot be written, each with a way back.
// Those that wait for others do so as long as their caller.
var unwritable = map[string]func(m *offline) (waits bool, back func()){
	"postgres cannot be reached": func(m *offline) (bool, func()) {
		m.cut.Off()
		return false, m.cut.On
	},
	"postgres only reads": func(m *offline) (bool, func()) {
		direct := m.direct
		name := direct[strings.LastIndex(direct, "/")+1:]
		name, _, _ = strings.Cut(name, "?")
		pgtest.Exec(m.t, direct, `ALTER DATABASE "`+name+`" SET default_transaction_read_only = on`)
		return false, func() {
			pgtest.Exec(m.t, direct, `SET transaction_read_only = off; ALTER DATABASE "`+name+`" RESET default_transaction_read_only`)
		}
	},
	"sqlite on a full disk": func(m *offline) (bool, func()) {
		wal := filepath.Join(m.StateDir, "ledger.db-wal")
		if err := os.Symlink("/dev/full", wal); err != nil {
			m.t.Fatal(err)
		}
		return false, func() { _ = os.Remove(wal) }
	},
	"sqlite is damaged":  func(m *offline) (bool, func()) { return false, m.damage(damages["no ledger"]) },
	"sqlite is a folder": func(m *offline) (bool, func()) { return false, m.damage(damages["a folder"]) },
	"sqlite is locked": func(m *offline) (bool, func()) {
		lock := flock.New(filepath.Join(m.StateDir, "ledger.db.lock"))
		if ok, err := lock.TryLock(); err != nil || !ok {
			m.t.Fatal(ok, err)
		}
		return true, func() { _ = lock.Close() }
	},
}

func onUnwritable(t *testing.T, f func(t *testing.T, m *offline, spoil func() (waits bool, back func()))) {
	t.Helper()
	for name, how := range unwritable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newOffline(t)
			if strings.HasPrefix(name, "sqlite") {
				m.Ledger = sqlstore.DefaultURL(m.StateDir)
				m.Engine = m.reopen()
			}
			f(t, m, func() (bool, func()) { return how(m) })
		})
	}
}

func TestNothingIsMadeThatTheLedgerCannotRecord(t *testing.T) {
	t.Parallel()
	onUnwritable(t, func(t *testing.T, m *offline, spoil func() (bool, func())) {
		ctx := context.Background()
		if err := m.Recover(ctx, nil); err != nil { // makes the ledger
			t.Fatal(told(err))
		}
		if err := m.Engine.Close(); err != nil {
			t.Fatal(err)
		}
		waits, back := spoil()
		for name, req := range map[string]engine.Request{
			"an own place": own, "a vendor": {Profile: "profile.stub", Name: "two"},
			"with an own key": {Profile: "profile.stub", Name: "three", Billing: "byok"},
		} {
			e := m.reopen()
			cctx, cancel := patience(waits)
			s, err := e.Create(cctx, req, func(engine.Sandbox) { t.Errorf("%s: it was begun", name) }, nil)
			cancel()
			failsClosed(t, name, err)
			if s.ID != "" || !strings.Contains(err.Error(), "nothing was created") {
				t.Errorf("%s: %s, %v", name, s.ID, err)
			}
		}
		if left := m.left(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		back()
		e := m.reopen()
		if rows, err := e.List(ctx, true); err != nil || len(rows) > 0 {
			t.Errorf("recorded: %+v, %v", rows, err)
		}
		s, err := e.Create(ctx, own, nil, nil)
		if err != nil {
			t.Fatal(told(err))
		}
		if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(told(err))
		}
	})
}

func TestWhatLivesStaysAsItIsWhereTheLedgerCannotRecordAChange(t *testing.T) {
	t.Parallel()
	onUnwritable(t, func(t *testing.T, m *offline, spoil func() (bool, func())) {
		ctx := context.Background()
		mine := m.create(own)
		paid := m.create(engine.Request{Profile: "profile.stub", Name: "two", TTL: "10m"})
		snap, err := m.Snapshot(ctx, paid.Receipt, engine.SnapshotRequest{Name: "kept"})
		if err != nil {
			t.Fatal(told(err))
		}
		if err := m.Engine.Close(); err != nil {
			t.Fatal(err)
		}
		waits, back := spoil()
		e := m.reopen()
		ends := map[engine.ID]time.Time{mine.ID: m.deadline(mine.ID), paid.ID: m.deadline(paid.ID)}
		for _, s := range []engine.Sandbox{mine, paid} {
			longer := s.Request
			longer.TTL = "2h"
			for name, change := range map[string]func(context.Context) error{
				"update": func(ctx context.Context) error { _, err := e.Update(ctx, s.Receipt, longer, nil); return err },
				"extend": func(ctx context.Context) error { _, err := e.ExtendTTL(ctx, s.Receipt, time.Hour); return err },
				"keep": func(ctx context.Context) error {
					_, err := e.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "another"})
					return err
				},
				"remake": func(ctx context.Context) error { _, err := e.Recreate(ctx, s.Receipt, nil, nil); return err },
				"replace": func(ctx context.Context) error {
					_, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{Replaced: true})
					return err
				},
			} {
				cctx, cancel := patience(waits)
				err := change(cctx)
				cancel()
				if waits && name == "replace" {
					if err == nil {
						t.Errorf("%s of %s went on", name, s.Name)
					}
					continue
				}
				failsClosed(t, name+" of "+s.Name, err)
				if !strings.Contains(err.Error(), "it was not changed") && !strings.Contains(err.Error(), "it was not replaced") ||
					!strings.Contains(err.Error(), string(s.ID)) {
					t.Errorf("%s of %s: %s", name, s.Name, told(err))
				}
			}
			if got, err := e.Get(ctx, s.Receipt); err != nil || got.State != "ready" && got.State != "active" ||
				!m.deadline(s.ID).Equal(ends[s.ID]) {
				t.Errorf("%s is %s and ends %s, not %s: %v", s.Name, got.State, m.deadline(s.ID), ends[s.ID], err)
			}
		}
		if len(m.left()) != 2 || m.snapshots() != 1 {
			t.Errorf("there is %v and %d snapshots", m.left(), m.snapshots())
		}
		if res, err := e.Exec(ctx, mine.Receipt, engine.ExecRequest{Command: []string{"echo", "hi"}}); err != nil ||
			string(res.Stdout) != "hi\n" {
			t.Errorf("used: %q, %s", res.Stdout, told(err))
		}
		back()
		e = m.reopen()
		if _, err := e.DeleteSnapshot(ctx, snap, false); err != nil {
			t.Error(told(err))
		}
		for _, s := range []engine.Sandbox{mine, paid} {
			if longer, err := e.ExtendTTL(ctx, s.Receipt, time.Hour); err != nil || !longer.ExpiresAt.Equal(s.CreatedAt.Add(time.Hour)) {
				t.Errorf("once it can be written: %s, %s", longer.ExpiresAt, told(err))
			}
			if r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || r.AlreadyGone {
				t.Errorf("%+v, %s", r, told(err))
			}
		}
		m.sound(true)
	})
}

// A caller whose time is up is told so, and not that the ledger is broken.
func TestAPassedTimeoutIsNotTheLedgersFault(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Name: "one"})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	longer := s.Request
	longer.TTL = "2h"
	for name, c := range map[string]struct {
		do           func(e *engine.Engine) error
		says, remedy string
	}{
		"create": {func(e *engine.Engine) error {
			_, err := e.Create(ctx, engine.Request{Profile: b.profile, Name: "two"}, nil, nil)
			return err
		}, "nothing was created, because the time for it was up", "timeouts.create"},
		"update": {func(e *engine.Engine) error { _, err := e.Update(ctx, s.Receipt, longer, nil); return err },
			"it was not changed, because the time for it was up", "more time"},
	} {
		err := c.do(b.reopen())
		if !extensions.IsKind(err, extensions.KindTimeout) || errors.Is(err, engine.ErrLedgerUnusable) ||
			!strings.Contains(err.Error(), c.says) || !strings.Contains(extensions.RemedyOf(err), c.remedy) {
			t.Errorf("%s: %s", name, told(err))
		}
	}
	b.end(s)
	b.clean()
}

// patience is a context for a call that may have to wait for others.
func patience(waits bool) (context.Context, context.CancelFunc) {
	if waits {
		return context.WithTimeout(context.Background(), 500*time.Millisecond)
	}
	return context.WithCancel(context.Background())
}

func failsClosed(t *testing.T, name string, err error) {
	t.Helper()
	unusable := errors.Is(err, engine.ErrLedgerUnusable) || extensions.IsKind(err, extensions.KindTimeout) // patience ended
	if !unusable || extensions.RemedyOf(err) == "" || extensions.KindOf(err) == extensions.KindConflict {
		t.Fatalf("%s: %v (%s)", name, err, extensions.RemedyOf(err))
	}
}
