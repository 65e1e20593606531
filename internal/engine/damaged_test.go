package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
)

// damages are what can happen to the file of a ledger, by name.
var damages = map[string]func(path string) error{
	"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
	"no ledger": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("no ledger ", 1000)), 0o600) },
	"a folder":  func(path string) error { return os.Mkdir(path, 0o700) },
}

// damage puts something else in the place of the ledger, without its holders'
// folder: only receipts tell of it then.
func (b *bench) damage(how func(path string) error) (back func()) {
	b.t.Helper()
	back = b.away()
	if err := errors.Join(os.RemoveAll(filepath.Join(b.StateDir, "holders")), how(filepath.Join(b.StateDir, "ledger.db"))); err != nil {
		b.t.Fatal(err)
	}
	return back
}

func TestNothingIsReplacedThatADamagedLedgerCouldNotRecord(t *testing.T) {
	t.Parallel()
	for name, how := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			req := engine.Request{Profile: "profile.stub", Name: "one"}
			s := b.create(req)
			snap, err := b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "kept"})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			back := b.damage(how)
			again := req
			again.Former = s.Receipt
			if _, err := b.reopen().Plan(ctx, again); !errors.Is(err, engine.ErrLedgerUnusable) {
				t.Errorf("planned: %v", err)
			}
			if q, err := b.reopen().Quote(ctx, again, engine.QuoteOptions{}); err != nil || name != "empty" &&
				!strings.Contains(notices(q.Notices), "cannot be read") {
				t.Errorf("a quote makes nothing, and tells: %v, %s", err, notices(q.Notices))
			}
			e := b.reopen()
			_, err = e.Destroy(ctx, s.Receipt, engine.DestroyOptions{Replaced: true})
			if !errors.Is(err, engine.ErrLedgerUnusable) || len(b.left()) != 1 {
				t.Errorf("ended for a replacement: %v, left %v", err, b.left())
			}
			if _, err := e.DeleteSnapshot(ctx, snap, true); !errors.Is(err, engine.ErrLedgerUnusable) || b.snapshots() != 1 {
				t.Errorf("a snapshot deleted for another: %v", err)
			}
			if got, err := e.Get(ctx, s.Receipt); err != nil || got.State != "ready" {
				t.Errorf("get: %s, %v", got.State, err)
			}
			if told, err := e.DeleteSnapshot(ctx, snap, false); err != nil || b.snapshots() != 0 || name != "empty" &&
				!strings.Contains(notices(told), "is not recorded") {
				t.Errorf("deleted: %v, told %s", err, notices(told))
			}
			r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
			if err != nil || len(b.left()) > 0 || !strings.Contains(notices(r.Notices), "not settled") {
				t.Errorf("destroyed: %v, left %v, told %s", err, b.left(), notices(r.Notices))
			}
			back()
			b.settledLater(s, r)
		})
	}
}

func TestNothingIsReplacedWhileTheLedgerCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"ledger.begin", "ledger.sandbox", "ledger.intent.open", "ledger.commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
			ctx := failpointtest.Inject(context.Background(), point, func() error { return errStop })
			if _, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{Replaced: true}); !errors.Is(err, engine.ErrLedgerUnusable) ||
				len(b.left()) != 1 {
				t.Errorf("%v, left %v", err, b.left())
			}
			if _, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{Replaced: true}); err != nil || len(b.left()) > 0 {
				t.Errorf("once it can be: %v, left %v", err, b.left())
			}
			b.clean()
		})
	}
}

// A note tells of the ledger that it waits for.
func TestANotedEndTellsOfTheLedgerItWaitsFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	back := b.damage(damages["no ledger"])
	r, err := b.reopen().Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.StateDir, "ledger.db")
	if err := errors.Join(os.Remove(path), os.RemoveAll(filepath.Join(b.StateDir, "holders")), damages["empty"](path)); err != nil {
		t.Fatal(err)
	}
	e := b.reopen()
	if _, err := e.Sweep(ctx, false, nil); err == nil || !strings.Contains(err.Error(), string(s.ID)+".json") {
		t.Errorf("swept an empty file: %v", err)
	}
	back()
	b.settledLater(s, r)
}
