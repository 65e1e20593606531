package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// apart is a machine that can be cut off from its ledger.
type apart struct {
	dir     string // state folder
	next    func() *engine.Engine
	off, on func()
	books   ledger.Ledger // the ledger itself, which is never cut off
	left    func() []string
}

// onEach runs a test with a ledger in PostgreSQL and with one behind a server.
func onEach(t *testing.T, f func(t *testing.T, m apart)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) apart{
		"postgres": func(t *testing.T) apart {
			address := pgtest.New(t)
			cut := pgtest.NewCutter(t, address)
			m := onShared(t, cut, cut.Address)
			l, err := ledger.Open(context.Background(), address, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			return apart{dir: m.dir, next: m.next, off: cut.Off, on: cut.On, books: l, left: m.bench.left}
		},
		"http": func(t *testing.T) apart {
			o := newOffice(t, "")
			token, b := o.token("acme/web"), &bench{t: t, dir: t.TempDir()}
			t.Cleanup(b.removeAll)
			return apart{dir: b.dir, next: func() *engine.Engine { return o.client(b.dir, "acme/web", token) }, off: func() { o.stop() }, on: o.reopen, books: o.books(), left: b.left}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, open(t))
		})
	}
}

// priced is a request for a place of one's own that costs something.
func priced(name, run string) engine.Request {
	here := extensions.Host{Name: "here", Local: true, Capacity: &extensions.HostCapacity{MaxSandboxes: 8}, Cost: &extensions.HostCost{PerHour: "36.00 USD"}}
	return engine.Request{Profile: "profile.quickstart", Name: name, TTL: "10m", Hosts: []string{here.Ref()}, Consumer: engine.Consumer{Actor: "agt", RunID: run}}
}

// account is what a ledger has of a sandbox's lives.
type account struct {
	Meters  []ledger.Meter
	Charges []ledger.Charge
	Held    int64
}

func accountOf(t *testing.T, l ledger.Ledger, id engine.ID) (a account) {
	t.Helper()
	ctx := context.Background()
	var err, cerr, herr error
	var held []ledger.Transfer
	a.Meters, err = l.Meters(ctx, id)
	a.Charges, cerr = l.Charges(ctx, id)
	held, herr = l.Held(ctx, id)
	if err := errors.Join(err, cerr, herr); err != nil {
		t.Fatal(err)
	}
	for _, x := range held {
		a.Held += x.Amount
	}
	return a
}

// spooledAt reads the spool itself.
func spooledAt(t *testing.T, dir string) ledger.Ledger {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "spool", "*", "ledger.db"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	l, err := ledger.Open(context.Background(), ledger.DefaultURL(filepath.Dir(files[0])), ledger.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// What is made again while the ledger cannot be reached has several lives: each
// keeps its meter, times, consumer and charges.
func TestWhatIsMadeAgainWithoutTheLedgerKeepsEachLife(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, m apart) {
		ctx := context.Background()
		budget := ledger.Budget{Account: "acme", Name: "all", Currency: "USD", Limit: 100 * dollar, Hard: true}
		if _, err := m.books.PutBudget(ctx, budget); err != nil {
			t.Fatal(err)
		}
		if _, err := m.next().List(ctx, false); err != nil {
			t.Fatal(err)
		}
		m.off()
		e := m.next()
		made := func(name, run string) engine.Sandbox {
			t.Helper()
			s, err := e.Create(ctx, priced(name, run), nil, nil)
			if err != nil {
				t.Fatal(told(err))
			}
			return s
		}
		again := func(s engine.Sandbox) engine.Sandbox {
			t.Helper()
			n, err := e.Recreate(ctx, s.Receipt, nil, nil)
			if err != nil || n.ID != s.ID || n.Generation != s.Generation+1 {
				t.Fatalf("made again: %+v, %s", n, told(err))
			}
			return n
		}
		destroy := func(s engine.Sandbox) {
			t.Helper()
			if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
				t.Fatal(told(err))
			}
		}
		lives := again(again(made("lives", "r-1")))
		if _, err := e.Exec(ctx, lives.Receipt, engine.ExecRequest{Command: []string{"true"}}); err != nil {
			t.Fatal(told(err))
		}
		over := again(made("over", "r-1"))
		destroy(over)
		broken := made("broken", "r-1")
		if _, err := e.Recreate(failpointtest.Inject(ctx, "engine.create.begun", func() error { return failpointtest.ErrInjected }), broken.Receipt, nil, nil); err == nil {
			t.Error("it did not break")
		}
		first := made("adopted", "r-1")
		req := priced("adopted", "r-2")
		req.OnConflict = "adopt"
		adopted, err := e.Create(ctx, req, nil, nil)
		if err != nil || adopted.ID != first.ID {
			t.Fatal(adopted.ID, told(err))
		}
		adopted = again(adopted)
		clash := again(made("clash", "r-1"))

		holder, err := m.books.Holder(ctx)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := extensions.NewID(nil)
		if err == nil {
			_, err = m.books.Begin(ctx, ledger.Begin{Key: "theirs", Holder: holder, ID: theirs, Account: "acme/web", Name: "clash", Profile: "profile.x", ProfileVersion: "1.0.0"})
		}
		if err != nil {
			t.Fatal(err)
		}
		want := map[engine.ID]account{}
		var spent, reserved int64
		for _, s := range []engine.Sandbox{lives, over, broken, adopted, clash} {
			a := accountOf(t, spooledAt(t, m.dir), s.ID)
			want[s.ID] = a
			reserved += a.Held
			for _, c := range a.Charges {
				spent += c.Amount
			}
			if n := len(a.Meters); n == 0 || n > 1 && len(a.Charges) == 0 {
				t.Fatalf("%s: %+v", s.Name, a)
			}
		}
		if reserved == 0 || spent == 0 || want[adopted.ID].Meters[0].For.RunID != "r-1" || want[adopted.ID].Meters[1].For.RunID != "r-2" || len(want[lives.ID].Meters) != 3 {
			t.Fatalf("%d, %d, %+v", reserved, spent, want)
		}

		m.on()
		var heard []engine.Notice
		back := m.next()
		if err := back.Recover(ctx, func(n engine.Notice) { heard = append(heard, n) }); err != nil {
			t.Fatal(told(err))
		}
		if strings.Count(notices(heard), "one name") != 1 || !strings.Contains(notices(heard), string(clash.ID)) {
			t.Errorf("told: %s", notices(heard))
		}
		for id, a := range want {
			if d := cmp.Diff(a, accountOf(t, m.books, id)); d != "" {
				t.Errorf("%s (-spool +ledger):\n%s", id, d)
			}
		}
		for _, s := range []engine.Sandbox{lives, over, adopted, clash} {
			row, err := m.books.Get(ctx, s.ID)
			if err != nil || row.Generation != s.Generation || row.Handle.Encode() != s.Handle && row.State != "destroyed" {
				t.Errorf("%s: %+v, %v", s.Name, row, err)
			}
		}
		if row, err := m.books.Get(ctx, clash.ID); err != nil || row.ClaimsName || !strings.Contains(row.Reason, "conflict") {
			t.Errorf("%+v, %v", row, err)
		}
		counted := func(when string, spent, reserved int64) {
			t.Helper()
			bs, err := m.books.Budgets(ctx, "acme")
			if err != nil || len(bs) != 1 || bs[0].Spent != spent || bs[0].Reserved != reserved {
				t.Errorf("%s: %+v, %v; want %d spent, %d reserved", when, bs, err, spent, reserved)
			}
			rows, err := m.books.Usage(ctx, ledger.UsageFilter{Account: "acme"})
			sum := int64(0)
			for _, r := range rows {
				sum += r.OwnPlace + r.OwnKey + r.Wallet
			}
			if err != nil || sum != spent {
				t.Errorf("%s: usage is %d, %v; want %d", when, sum, err, spent)
			}
			if r, err := m.books.Verify(ctx); err != nil || !r.OK() {
				t.Errorf("%s: %+v, %v", when, r, err)
			}
		}
		counted("moved", spent, reserved)

		e, spent = back, 0
		for _, s := range []engine.Sandbox{lives, adopted, clash} {
			destroy(s)
		}
		for id := range want {
			a := accountOf(t, m.books, id)
			for _, c := range a.Charges {
				spent += c.Amount
			}
			if a.Held != 0 || a.Meters[len(a.Meters)-1].Open() {
				t.Errorf("%s: %+v", id, a)
			}
		}
		counted("ended", spent, 0)
		if left := m.left(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// What is in the ledger alone is not made again without it, and what sends a
// bill is not either.
func TestWithoutTheLedgerOnlyWhatTheSpoolHasIsMadeAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, m apart) {
		ctx := context.Background()
		known, err := m.next().Create(ctx, priced("known", "r-1"), nil, nil)
		if err != nil {
			t.Fatal(told(err))
		}
		m.off()
		if s, err := m.next().Recreate(ctx, known.Receipt, nil, nil); !extensions.IsKind(err, extensions.KindUnavailable) || s.ID != "" {
			t.Errorf("%v, %s", s.ID, told(err))
		}
		m.on()
		if _, err := m.next().Destroy(ctx, known.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(told(err))
		}
	})
}

// A budget that has no room left keeps nothing out that is there already.
func TestWhatLivesIsBroughtInThoughNoBudgetHasRoom(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, m apart) {
		ctx := context.Background()
		if _, err := m.next().List(ctx, false); err != nil {
			t.Fatal(err)
		}
		m.off()
		s, err := m.next().Create(ctx, priced("one", "r-1"), nil, nil)
		if err != nil {
			t.Fatal(told(err))
		}
		if _, err := m.books.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "all", Currency: "USD", Limit: 1, Hard: true}); err != nil {
			t.Fatal(err)
		}
		m.on()
		var heard []engine.Notice
		e := m.next()
		if err := e.Recover(ctx, func(n engine.Notice) { heard = append(heard, n) }); err != nil {
			t.Fatal(told(err))
		}
		if !strings.Contains(notices(heard), "budget all of acme") {
			t.Errorf("told: %s", notices(heard))
		}
		if a := accountOf(t, m.books, s.ID); a.Held != 0 || len(a.Meters) != 1 || !a.Meters[0].Open() {
			t.Errorf("%+v", a)
		}
		r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
		if err != nil || len(r.Charges) == 0 {
			t.Errorf("%+v, %s", r, told(err))
		}
		if b, err := m.books.Budgets(ctx, "acme"); err != nil || b[0].Over == 0 || b[0].Over != b[0].Spent {
			t.Errorf("%+v, %v", b, err)
		}
		if r, err := m.books.Verify(ctx); err != nil || !r.OK() {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
