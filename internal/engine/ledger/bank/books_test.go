package bank_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// org keeps rows as a store would, and checks after each change that they add up.
type org struct {
	t         testing.TB
	balances  map[string]bank.Balance
	budgets   []bank.Budget
	transfers []bank.Transfer
	resolved  map[string]bool
}

func newOrg(t testing.TB, budgets ...bank.Budget) *org {
	o := &org{t: t, balances: map[string]bank.Balance{}, resolved: map[string]bool{}}
	for _, b := range budgets {
		o.budgets = append(o.budgets, b.Set(nil, noon))
	}
	return o
}

func (o *org) open(subject string) *bank.Books {
	s := bank.Stored{Budgets: append([]bank.Budget{}, o.budgets...)}
	for _, b := range o.balances {
		s.Balances = append(s.Balances, b)
	}
	for _, x := range o.transfers {
		if x.Subject == subject && x.Kind == bank.TransferPending && !o.resolved[x.ID] {
			s.Held = append(s.Held, x)
		}
	}
	return bank.Open("acme/web", subject, noon, s)
}

func (o *org) post(b *bank.Books) {
	o.t.Helper()
	p := b.Posted()
	for _, a := range append(p.Made, p.Changed...) {
		o.balances[a.ID] = a
	}
	for _, c := range p.Budgets {
		for i := range o.budgets {
			if o.budgets[i].ID == c.ID {
				o.budgets[i] = c
			}
		}
	}
	for _, x := range p.Transfers {
		o.transfers = append(o.transfers, x)
		if x.PendingID != "" && o.resolved[x.PendingID] {
			o.t.Fatalf("%s is resolved twice", x.PendingID)
		}
		o.resolved[x.PendingID] = true
	}
	var all []bank.Balance
	for _, a := range o.balances {
		all = append(all, a)
	}
	audit := bank.NewAudit(o.transfers)
	if problems := append(audit.Accounts(all), audit.Budgets(o.budgets)...); len(problems) > 0 {
		o.t.Fatalf("the books do not add up: %q", problems)
	}
}

func (o *org) grant(amount int64) {
	o.t.Helper()
	b := o.open("grant")
	if err := b.Grant(fmt.Sprint("grant-", len(o.transfers)), "USD", amount); err != nil {
		o.t.Fatal(err)
	}
	o.post(b)
}

func (o *org) change(subject string, turn bank.Turn) (string, error) {
	o.t.Helper()
	turn.Key = fmt.Sprintf("%s/%d", subject, len(o.transfers))
	b := o.open(subject)
	payer, err := b.Change(turn)
	if err == nil {
		o.post(b)
	}
	return payer, err
}

func (o *org) reserve(subject string, amount int64) error {
	o.t.Helper()
	_, err := o.change(subject, bank.Turn{Reserve: &bank.Reserve{Currency: "USD", Amount: amount, Wallet: true}})
	return err
}

func (o *org) end(subject string, used int64) {
	o.t.Helper()
	charges := []bank.Charge{{Component: "wall", Amount: used, Currency: "USD", Confidence: "exact"}}
	if _, err := o.change(subject, bank.Turn{Payer: bank.AccountWallet, Ends: true, Charges: charges}); err != nil {
		o.t.Fatal(err)
	}
}

func (o *org) of(kind string) bank.Balance { return o.balances[bank.AccountID("acme", kind, "USD")] }

func (o *org) wants(what string, got, want int64) {
	o.t.Helper()
	if got != want {
		o.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func TestALifeIsPaidFromWhatWasSetAside(t *testing.T) {
	t.Parallel()
	o := newOrg(t, bank.Budget{Account: "acme", Name: "all", Currency: "USD", Limit: 1000, Hard: true})
	o.grant(100)
	if err := o.reserve("s", 60); err != nil {
		t.Fatal(err)
	}
	o.wants("free", o.of(bank.AccountWallet).Available(), 40)
	o.wants("reserved", o.budgets[0].Reserved, 60)
	o.end("s", 25)
	o.wants("free", o.of(bank.AccountWallet).Available(), 75)
	o.wants("revenue", o.of(bank.AccountRevenue).CreditsPosted, 25)
	o.wants("reserved", o.budgets[0].Reserved, 0)
	o.wants("spent", o.budgets[0].Spent, 25)
	o.wants("over", o.budgets[0].Over, 0)
}

func TestLimitsRefuseTheFirstUnitTooMuch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grant, limit, most int64
		hard               bool
	}{
		"wallet":                        {50, 1000, 50, true},
		"hard budget":                   {1000, 70, 70, true},
		"a soft budget refuses nothing": {90, 10, 90, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrg(t, bank.Budget{Account: "acme/web", Name: "all", Currency: "USD", Limit: c.limit, Hard: c.hard})
			o.grant(c.grant)
			var short *bank.Insufficient
			if err := o.reserve("s", c.most+1); !errors.As(err, &short) || !extensions.IsKind(err, extensions.KindExhausted) {
				t.Fatalf("%d above what there is: %v", c.most+1, err)
			}
			o.wants("available", short.Available, c.most)
			if err := o.reserve("s", c.most); err != nil {
				t.Fatal(err)
			}
			if err := o.reserve("other", c.grant-c.most+1); err == nil {
				t.Error("what is set aside was given twice")
			}
		})
	}
}

func TestUsageAboveTheReservationIsOwedAndPaidFirst(t *testing.T) {
	t.Parallel()
	o := newOrg(t, bank.Budget{Account: "acme", Name: "all", Currency: "USD", Limit: 1000})
	o.grant(30)
	if err := o.reserve("s", 20); err != nil {
		t.Fatal(err)
	}
	o.end("s", 45)
	o.wants("free", o.of(bank.AccountWallet).Available(), 0)
	o.wants("owed", o.of(bank.AccountReceivable).Owed(), 15)
	o.wants("spent", o.budgets[0].Spent, 45)
	o.wants("over", o.budgets[0].Over, 25)
	o.grant(10)
	o.wants("owed", o.of(bank.AccountReceivable).Owed(), 5)
	o.grant(10)
	o.wants("owed", o.of(bank.AccountReceivable).Owed(), 0)
	o.wants("free", o.of(bank.AccountWallet).Available(), 5)
}

func TestUsageFillsAllReservationsBeforeAnyIsOver(t *testing.T) {
	t.Parallel()
	o := newOrg(t, bank.Budget{Account: "acme", Name: "all", Currency: "USD", Limit: 1000})
	o.grant(20)
	for range 2 {
		if err := o.reserve("s", 10); err != nil {
			t.Fatal(err)
		}
	}
	o.end("s", 15)
	o.wants("over", o.budgets[0].Over, 0)
	o.wants("spent", o.budgets[0].Spent, 15)
	o.wants("free", o.of(bank.AccountWallet).Available(), 5)
}

func TestATotalReleasesWhatIsNotNeeded(t *testing.T) {
	t.Parallel()
	o := newOrg(t)
	o.grant(100)
	for _, amount := range []int64{30, 80, 10} {
		r := bank.Reserve{Currency: "USD", Amount: amount, Wallet: true, Total: true}
		if _, err := o.change("s", bank.Turn{Reserve: &r}); err != nil {
			t.Fatal(err)
		}
		o.wants("set aside", o.of(bank.AccountWallet).DebitsPending, amount)
	}
}

func TestWhatNobodyWillKnowIsReleasedAndNoted(t *testing.T) {
	t.Parallel()
	o := newOrg(t)
	o.grant(50)
	if err := o.reserve("s", 40); err != nil {
		t.Fatal(err)
	}
	if _, err := o.change("s", bank.Turn{Unresolved: true}); err != nil {
		t.Fatal(err)
	}
	o.wants("free", o.of(bank.AccountWallet).Available(), 50)
	o.wants("exposure", o.of(bank.AccountExposure).DebitsPosted, 40)
}

// Whatever happens in whatever order: the books add up after each change, no
// wallet is overdrawn, no hard budget passed by a reservation, and what was used
// is what was earned and is owed.
func TestNoSequenceBreaksTheBooks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7)) // the same each time
		const limit = 300
		o := newOrg(t, bank.Budget{Account: "acme", Name: "hard", Currency: "USD", Limit: limit, Hard: true},
			bank.Budget{Account: "acme/web", Name: "soft", Currency: "USD", Limit: 20})
		used := int64(0)
		for range 40 {
			s := fmt.Sprint("s", r.IntN(4))
			switch r.IntN(4) {
			case 0:
				o.grant(1 + r.Int64N(60))
			case 1:
				before := o.budgets[0]
				if n := 1 + r.Int64N(40); o.reserve(s, n) == nil && before.Reserved+before.Spent+n > limit {
					t.Fatalf("seed %d: a hard budget was passed", seed)
				}
			case 2:
				total := bank.Reserve{Currency: "USD", Amount: 1 + r.Int64N(40), Wallet: true, Total: true, Less: r.IntN(2) == 0}
				_, _ = o.change(s, bank.Turn{Reserve: &total}) // refused where it does not fit
			case 3:
				n := r.Int64N(50)
				o.end(s, n)
				used += n
			}
		}
		if earned := o.of(bank.AccountRevenue).CreditsPosted; earned != used {
			t.Fatalf("seed %d: %d was used, %d earned", seed, used, earned)
		}
		o.wants("spent", o.budgets[0].Spent, used)
	}
}

func TestCeilingsCount(t *testing.T) {
	t.Parallel()
	began := bank.Ceiling{Scope: "acme", Max: 2, Per: time.Hour}
	ago := func(minutes ...int) (list []time.Time) {
		for _, m := range minutes {
			list = append(list, noon.Add(-time.Duration(m)*time.Minute))
		}
		return list
	}
	if p := began.Begun(noon, ago(5)); !p.Fits() || !p.Next.IsZero() {
		t.Errorf("one of two: %+v", p)
	}
	if p := began.Begun(noon, ago(5, 20)); p.Fits() || !p.Next.Equal(noon.Add(40*time.Minute)) {
		t.Errorf("two of two: %+v", p)
	}
	money := bank.Ceiling{Scope: "acme", Currency: "USD", Max: 100, Per: time.Hour}
	held := []bank.SetAside{{For: "a", Amount: 30}, {For: "b", Amount: 10}}
	ended := []bank.Charged{{At: noon.Add(-30 * time.Minute), Amount: 20}, {At: noon.Add(-10 * time.Minute), Amount: 15}}
	for _, c := range []struct {
		need  int64
		total bool
		fits  bool
		next  time.Duration
	}{{25, false, true, 0}, {26, false, false, 30 * time.Minute}, {46, false, false, 50 * time.Minute}, {61, false, false, 0}, {55, true, true,
		0}, {56, true, false, 30 * time.Minute}} {
		p := money.Spent(noon, held, ended, c.need, c.total, "a")
		if p.Fits() != c.fits || c.next > 0 && !p.Next.Equal(noon.Add(c.next)) || c.next == 0 && !p.Next.IsZero() {
			t.Errorf("needs %d (in all: %t): fits %t, next %s", c.need, c.total, p.Fits(), p.Next)
		}
		if p.Count != 75 {
			t.Errorf("counted %d", p.Count)
		}
	}
}
