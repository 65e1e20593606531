package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func notices(ns []engine.Notice) string {
	var out strings.Builder
	for _, n := range ns {
		out.WriteString(n.Summary + ": " + n.Detail + "\n")
	}
	return out.String()
}

// away moves the ledger's files out of the way and gives a way back.
func (b *bench) away() (back func()) {
	b.t.Helper()
	keep := b.t.TempDir()
	files, _ := filepath.Glob(filepath.Join(b.StateDir, "ledger.db*"))
	for _, f := range files {
		if err := os.Rename(f, filepath.Join(keep, filepath.Base(f))); err != nil {
			b.t.Fatal(err)
		}
	}
	return func() {
		again, _ := filepath.Glob(filepath.Join(b.StateDir, "ledger.db*"))
		for _, f := range again {
			_ = os.RemoveAll(f)
		}
		for _, f := range files {
			if err := os.Rename(filepath.Join(keep, filepath.Base(f)), f); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func TestADestroyGoesOnWithoutTheLedger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(b *bench) (back func())
	}{
		"missing": {spoil: (*bench).away},
		"corrupt": {spoil: func(b *bench) func() {
			back := b.away()
			if err := os.WriteFile(filepath.Join(b.StateDir, "ledger.db"), []byte(strings.Repeat("no ledger ", 1000)), 0o600); err != nil {
				b.t.Fatal(err)
			}
			return back
		}},
		"a folder": {spoil: func(b *bench) func() {
			back := b.away()
			if err := os.Mkdir(filepath.Join(b.StateDir, "ledger.db"), 0o700); err != nil {
				b.t.Fatal(err)
			}
			return back
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			back := c.spoil(b)
			e := b.reopen()
			if got, err := e.Get(ctx, s.Receipt); err != nil || got.State != "ready" {
				t.Errorf("get: %s, %v", got.State, err)
			}
			r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
			if err != nil || len(b.left()) > 0 {
				t.Fatalf("destroy: %v, left %v", err, b.left())
			}
			if !strings.Contains(notices(r.Notices), "not settled") {
				t.Errorf("told: %s", notices(r.Notices))
			}
			if len(r.Charges) == 0 {
				t.Error("the receipt alone has prices, and nothing is charged")
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			back()
			b.settledLater(s, r)
		})
	}
}

// settledLater demands that the ledger, back with the row still ready, is
// settled by the next run at the true end, which was noted.
func (b *bench) settledLater(s engine.Sandbox, r engine.DestroyReport) {
	b.t.Helper()
	ctx := context.Background()
	e := b.reopen()
	if _, err := e.Sweep(ctx, false, nil); err != nil {
		b.t.Fatal(err)
	}
	row, err := e.Lookup(ctx, s.ID, "", "")
	if err != nil || row.State != "destroyed" {
		b.t.Fatalf("the row is %s, %v", row.State, err)
	}
	if row.EndedAt.Sub(r.EndedAt).Abs() > time.Millisecond {
		b.t.Errorf("settled at %s, it ended at %s", row.EndedAt, r.EndedAt)
	}
	if cs, err := e.Charges(ctx, s.ID); err != nil || len(cs) == 0 {
		b.t.Errorf("charges: %v, %v", cs, err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.StateDir, "unsettled", "*")); len(left) > 0 {
		b.t.Errorf("notes are left: %v", left)
	}
	b.clean()
}

func TestADestroyGoesOnWhenTheLedgerFailsInBetween(t *testing.T) {
	t.Parallel()
	takesLong(t)
	for _, point := range []string{"ledger.begin", "ledger.sandbox", "ledger.intent.open", "ledger.meter.close", "ledger.charge",
		"ledger.commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
			ctx := failpointtest.Inject(context.Background(), point, func() error { return errStop })
			r, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
			if err != nil || len(b.left()) > 0 || !strings.Contains(notices(r.Notices), "not settled") {
				t.Fatalf("%v, left %v, told %s", err, b.left(), notices(r.Notices))
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			b.settledLater(s, r)
		})
	}
}

func TestADestroyWaitsForALockedLedgerAsLongAsItsCallerDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	locks, _ := filepath.Glob(filepath.Join(b.StateDir, "ledger.db*lock"))
	if len(locks) != 1 {
		t.Fatalf("lock files: %v", locks)
	}
	lock := flock.New(locks[0])
	if ok, err := lock.TryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err == nil || len(b.left()) != 1 {
		t.Errorf("the caller gave up: %v, left %v", err, b.left())
	}
	if got, err := b.reopen().Get(context.Background(), s.Receipt); err != nil || got.State != "ready" {
		t.Errorf("a read needs no lock: %s, %v", got.State, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil || len(b.left()) > 0 {
		t.Errorf("destroy: %v, left %v", err, b.left())
	}
	b.clean()
}

func TestTheFormerOwnersReceiptEndsNothingAnywhere(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"profile.stub", "profile.quickstart"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			s := b.create(engine.Request{Profile: profile, Name: "one"})
			taken := b.create(engine.Request{Profile: profile, Name: "one", OnConflict: "adopt"})
			r, err := b.elsewhere().Destroy(ctx, s.Receipt, engine.DestroyOptions{})
			if err != nil || !r.AlreadyGone || len(b.left()) != 1 || !strings.Contains(notices(r.Notices), "another owner") {
				t.Errorf("the former owner, without the ledger: %+v, %v, left %v", r, err, b.left())
			}
			if _, err := b.elsewhere().Get(ctx, s.Receipt); !extensions.IsKind(err, extensions.KindConflict) {
				t.Errorf("the former owner reads: %v", err)
			}
			if _, err := b.elsewhere().Destroy(ctx, taken.Receipt, engine.DestroyOptions{}); err != nil || len(b.left()) > 0 {
				t.Errorf("the owner: %v, left %v", err, b.left())
			}
		})
	}
}

func TestAReceiptFromBeforeAnyPlaceFindsItsSandbox(t *testing.T) {
	t.Parallel()
	takesLong(t)
	for _, profile := range []string{"profile.stub", "profile.eventual", "profile.quickstart"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			var early engine.Receipt
			s, err := b.Create(ctx, engine.Request{Profile: profile, Name: "one"}, func(s engine.Sandbox) { early = s.Receipt }, nil)
			if err != nil || early.ID != s.ID || early.Extension != "" {
				t.Fatalf("%+v, %v", early, err)
			}
			if got, err := b.elsewhere().Get(ctx, early); err != nil || got.State != "ready" || got.Receipt.Handle != s.Handle {
				t.Errorf("get: %s %q, want %q, %v", got.State, got.Receipt.Handle, s.Handle, err)
			}
			if _, err := b.elsewhere().Destroy(ctx, early, engine.DestroyOptions{}); err != nil || len(b.left()) > 0 {
				t.Errorf("destroy: %v, left %v", err, b.left())
			}
			if r, err := b.elsewhere().Destroy(ctx, early, engine.DestroyOptions{}); err != nil || !r.AlreadyGone {
				t.Errorf("again: %+v, %v", r, err)
			}
		})
	}
}

func TestADestroyOfWhatTheCatalogNoLongerHasSaysWhatToAdd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	mine := b.reopen(onFiles(map[string]string{
		"extensions/ext.mine.yaml":   bound("ext.mine", "$VENDOR", ""),
		"profiles/profile.mine.yaml": profile("profile.mine", "extension: ext.mine\n"),
	}))
	s, err := mine.Create(ctx, engine.Request{Profile: "profile.mine", Name: "one"}, nil, nil)
	if err != nil {
		t.Fatal(err, extensions.RemedyOf(err))
	}
	for name, e := range map[string]*engine.Engine{"with": b.Engine, "without": b.elsewhere()} {
		_, err = e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
		if err == nil || !strings.Contains(err.Error()+extensions.RemedyOf(err), "ext.mine") ||
			!strings.Contains(extensions.RemedyOf(err), "catalog") {
			t.Errorf("%s the ledger: %v (%s)", name, err, extensions.RemedyOf(err))
		}
	}
	if _, err := mine.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || len(b.left()) > 0 {
		t.Errorf("with the catalog again: %v, left %v", err, b.left())
	}
}
