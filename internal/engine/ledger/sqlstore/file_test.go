package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/ledgertest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var ctx = context.Background()

// bills are what meters of these tests are charged.
var bills ledgertest.Bills

// file is a ledger file of one test, and its path.
func file(t testing.TB) (l *ledger.Ledger, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state", "ledger.db")
	return opened(t, path, sqlstore.Options{}), path
}

func opened(t testing.TB, path string, o sqlstore.Options) *ledger.Ledger {
	t.Helper()
	o.Charges = bills.Of
	l, err := sqlstore.Open(ctx, "sqlite://"+path, o)
	if err != nil {
		t.Fatal(err, extensions.RemedyOf(err))
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func begun(t testing.TB, l *ledger.Ledger, name string) ledger.Sandbox {
	t.Helper()
	id, err := extensions.NewID(nil)
	if err != nil {
		t.Fatal(err)
	}
	holder, err := l.Holder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Begin(ctx, ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ran is one that was ready and is destroyed, with a charge.
func ran(t testing.TB, l *ledger.Ledger, name string) ledger.Sandbox {
	t.Helper()
	s := begun(t, l, name)
	holder, _ := l.Holder(ctx)
	bills.Put(s.ID, ledger.Charge{Segment: 1, Component: "wall", Amount: 5, Currency: "USD"})
	for _, c := range []ledger.Change{
		{To: lifecycle.Provisioning},
		{To: lifecycle.Ready, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed},
			Meter: ledger.MeterOps{Open: &ledger.MeterOpen{Currency: "USD"}}},
		{To: lifecycle.Destroying, Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder}},
		{To: lifecycle.Destroyed, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Meter: ledger.MeterOps{Close: &ledger.MeterClose{}}},
	} {
		c.ID, c.Key = s.ID, string(s.ID)+string(c.To)
		var err error
		if s, err = l.Apply(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// listing is every file below the folder with its size and time, to prove
// that nothing was written.
func listing(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		out[p] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMissingLedgerReadsAsEmptyAndIsNotMade(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "none")
	l := opened(t, filepath.Join(folder, "ledger.db"), sqlstore.Options{ReadOnly: true})
	rows, err := l.List(ctx, ledger.Filter{})
	intents, err2 := l.OpenIntents(ctx, ledger.IntentFilter{})
	hosts, err3 := l.Hosts(ctx, "")
	head, err4 := l.Head(ctx, "acme")
	report, err5 := l.Verify(ctx)
	waiting, err6 := l.Outbox(ctx, "hub", "acme")
	if err := errors.Join(err, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	if len(rows)+len(intents)+len(hosts)+len(waiting.Withheld) != 0 || head.Seq != 0 || len(report.Problems) > 0 || l.ID() != "" {
		t.Fatal("something is in nothing")
	}
	if _, err := l.Get(ctx, "sbx-aaaaaaaaaaaaaaaaaaaa"); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Fatal(err)
	}
	if _, err := l.PutHost(ctx, ledger.Host{Account: "a", Name: "b"}); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the folder was made: %v", err)
	}
	report, err = l.Verify(ctx, ledger.Head{Ledger: "x", Stream: "acme", Seq: 3, Hash: "aa"})
	if err != nil || len(report.Problems) == 0 {
		t.Fatalf("a receipt of a ledger that is gone: %v, %v", report, err)
	}
}

func TestUnfinishedLedgerReadsAsEmpty(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := opened(t, path, sqlstore.Options{ReadOnly: true})
	if rows, err := l.List(ctx, ledger.Filter{}); err != nil || len(rows) != 0 {
		t.Fatal(rows, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Fatal(info, err)
	}
}

func TestReadingChangesNoByteOfTheLedger(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	s := ran(t, l, "n")
	before := listing(t, filepath.Dir(path))
	r := opened(t, path, sqlstore.Options{ReadOnly: true})
	if got, err := r.Get(ctx, s.ID); err != nil || got.ID != s.ID || r.ID() != l.ID() {
		t.Fatal(got, err)
	}
	if report, err := r.Verify(ctx); err != nil || len(report.Problems) > 0 || report.Events != 5 || report.Sandboxes != 1 {
		t.Fatal(report, err)
	}
	_, err := r.Begin(ctx, ledger.Begin{Key: "k", Holder: "h", ID: s.ID, Account: "acme/web", Name: "m"})
	if !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	after := listing(t, filepath.Dir(path))
	delete(before, path+"-shm")
	delete(after, path+"-shm")
	if d := cmp.Diff(before, after); d != "" {
		t.Fatalf("reading wrote (-before +after):\n%s", d)
	}
}

func TestReadingDoesNotWaitForAWriter(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	s := ran(t, l, "n")
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	db := raw(t, path)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("UPDATE sandboxes SET name = 'uncommitted'"); err != nil {
		t.Fatal(err)
	}
	r := opened(t, path, sqlstore.Options{ReadOnly: true})
	if got, err := r.Get(ctx, s.ID); err != nil || got.Name != "n" {
		t.Fatal(got, err)
	}
}

func TestWriterGivesUpWhenTheLockIsNeverFree(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := l.PutHost(short, ledger.Host{Account: "a", Name: "b"})
	if !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" {
		t.Fatalf("want unavailable, got %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.PutHost(ctx, ledger.Host{Account: "a", Name: "b"}); err != nil {
		t.Fatalf("not usable after a wait given up: %v", err)
	}
}

func TestReaderWithoutRightsToTheFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("this user may write anywhere")
	}
	l, path := file(t)
	s := ran(t, l, "n")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Dir(path), 0o700)
	r := opened(t, path, sqlstore.Options{ReadOnly: true})
	if got, err := r.Get(ctx, s.ID); err != nil || got.ID != s.ID {
		t.Fatal(got, err)
	}
}

func TestFilesAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no such modes on Windows")
	}
	l, path := file(t)
	begun(t, l, "n")
	err := filepath.WalkDir(filepath.Dir(path), func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %s", p, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNothingOfAHolderIsLeftAfterClose(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	begun(t, l, "n")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatalf("closing twice: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "holders", "*", "*"))
	if err != nil || len(left) != 0 {
		t.Fatal(left, err)
	}
}

func TestDamagedFileIsAClearError(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, path string){
		"another file": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("this is no ledger\n", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"overwritten in the middle": func(t *testing.T, path string) {
			l := opened(t, path, sqlstore.Options{})
			ran(t, l, "n")
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 100; i < len(b); i++ {
				b[i] = 0xA5
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		spoil(t, path)
		for _, readOnly := range []bool{false, true} {
			l, err := sqlstore.Open(ctx, "sqlite://"+path, sqlstore.Options{ReadOnly: readOnly})
			if !extensions.IsKind(err, extensions.KindInternal) || !strings.Contains(extensions.RemedyOf(err), "backup") ||
				!strings.Contains(err.Error(), path) {
				t.Errorf("%s, read only %t: %v (remedy %q)", name, readOnly, err, extensions.RemedyOf(err))
			}
			if l != nil {
				t.Errorf("%s: opened all the same", name)
			}
		}
	}
}

func TestNewerProgramsLedgerIsReadAndNotWritten(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	s := ran(t, l, "n")
	alter(t, path, "UPDATE meta SET value = '2' WHERE key = 'min_writer_version'")
	if _, err := l.PutHost(ctx, ledger.Host{Account: "a", Name: "b"}); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Fatalf("written by one that was open before: %v", err)
	}
	if _, err := sqlstore.Open(ctx, "sqlite://"+path, sqlstore.Options{}); !extensions.IsKind(err, extensions.KindUnsupported) ||
		!strings.Contains(extensions.RemedyOf(err), "upgrade") {
		t.Fatalf("opened for writing: %v", err)
	}
	r := opened(t, path, sqlstore.Options{ReadOnly: true})
	if got, err := r.Get(ctx, s.ID); err != nil || got.ID != s.ID {
		t.Fatal(got, err)
	}
}

func TestOtherMigrationIsRefused(t *testing.T) {
	t.Parallel()
	l, path := file(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	alter(t, path, "UPDATE migrations SET sha256 = 'other'")
	if _, err := sqlstore.Open(ctx, "sqlite://"+path, sqlstore.Options{}); !extensions.IsKind(err, extensions.KindInternal) ||
		extensions.RemedyOf(err) == "" {
		t.Fatal(err)
	}
}

func TestFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("needs the right to mount a small file system")
	}
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("mounting is not allowed here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	l, err := sqlstore.Open(ctx, "sqlite://"+disk+"/ledger.db", sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	holder, err := l.Holder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var kept []extensions.ID
	for {
		id, _ := extensions.NewID(nil)
		_, err := l.Begin(ctx, ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: string(id),
			Request: []byte(`{"pad":"` + strings.Repeat("x", 5000) + `"}`)})
		if err != nil {
			if !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" {
				t.Fatalf("want unavailable, got %v", err)
			}
			break
		}
		kept = append(kept, id)
	}
	rows, err := l.List(ctx, ledger.Filter{})
	if err != nil || len(rows) != len(kept) || len(kept) == 0 {
		t.Fatalf("%d rows of %d: %v", len(rows), len(kept), err)
	}
	if r, err := l.Verify(ctx); err != nil || len(r.Problems) > 0 {
		t.Fatal(r.Problems, err)
	}
	if out, err := exec.Command("mount", "-o", "remount,size=8m", disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	begun(t, l, "again") // usable once there is room
	if r, err := l.Verify(ctx); err != nil || len(r.Problems) > 0 {
		t.Fatal(r.Problems, err)
	}
}

// raw opens the file behind the ledger's back.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	for _, stmt := range statements {
		res, err := raw(t, path).Exec(stmt)
		if err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			t.Fatalf("%s changed nothing: %v", stmt, err)
		}
	}
}
