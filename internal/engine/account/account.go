package account

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// View is what an account has and what bounds it.
type View struct {
	Account   string // org/workspace
	Org       string // whose wallets they are
	Workspace string
	Wallets   []Wallet // by currency
	Budgets   []BudgetView
	Ceilings  []CeilingView
	Live      int64 // sandboxes of the account that are not destroyed
}

// Wallet is an org's prepaid credit in one currency. Amounts are decimal
// strings; Available = Granted - Spent - Reserved.
type Wallet struct {
	Currency  string
	Granted   string
	Spent     string
	Reserved  string // set aside for sandboxes that live
	Available string
	Owed      string // receivable: used, and more than the wallet had
	// Unpriced are the lives of which the wallet pays something at a price that
	// nobody told: what that comes to is in none of the amounts.
	Unpriced int64
}

// CeilingView is a ceiling with what counts against it. Of one that bounds
// money, Limit and Used are decimal strings; else they count sandboxes.
type CeilingView struct {
	Source   string // whose it is: "policy.acme"
	Scope    string // org/workspace, or the org
	Currency string // "" = it bounds how many sandboxes are begun
	Metered  bool   // counts only places that send a bill
	Limit    string
	Used     string
	Per      string // how long it looks back: "10m"
	// Next is when there is room again; zero where there is, and where that
	// takes an end of what lives, or a higher ceiling.
	Next time.Time
	Full bool // nothing more is let through now
}

// BudgetView is a budget with what counts against it. Amounts are decimal
// strings; Left = Limit - Spent - Reserved, and negative above the limit.
type BudgetView struct {
	Account  string // org/workspace, or the org
	Name     string
	Currency string
	Limit    string
	Hard     bool
	Period   string // day | week | month, "" = for ever
	Spent    string // in the period
	Over     string // of it, what was more than had been reserved
	Reserved string
	Left     string
	Since    time.Time // zero = for ever
	ResetsAt time.Time // zero = never
	// Unpriced are the lives, of the period and now, of which something is
	// charged for at a price that nobody told: what that comes to is in none of
	// the amounts.
	Unpriced int64
}

// View reads what the account has. It writes nothing; a missing
// ledger is an account without anything.
func (a *Account) View(ctx context.Context) (View, error) {
	org, workspace, _ := strings.Cut(a.name, "/")
	v := View{Account: a.name, Org: org, Workspace: workspace}
	l, err := a.books.Reader(ctx)
	if err != nil {
		return v, err
	}
	if v.Wallets, err = a.wallets(ctx, l, org); err != nil {
		return v, err
	}
	budgets, err := a.Budgets(ctx)
	if err != nil {
		return v, err
	}
	for _, b := range budgets {
		if b.Account == org || b.Account == a.name {
			v.Budgets = append(v.Budgets, b)
		}
	}
	if v.Ceilings, err = a.ceilingViews(ctx, l); err != nil {
		return v, err
	}
	rows, err := l.List(ctx, ledger.Filter{Account: a.name, Live: true})
	v.Live = int64(len(rows))
	return v, err
}

// ceilingViews are the ceilings of a create at a place that sends a bill, each once.
func (a *Account) ceilingViews(ctx context.Context, l ledger.Ledger) ([]CeilingView, error) {
	paces, err := l.Paces(ctx, CeilingsOf(a.catalog, a.name, true), nil)
	var out []CeilingView
	seen := map[ledger.Ceiling]bool{}
	for _, p := range paces {
		if seen[p.Ceiling] {
			continue
		}
		seen[p.Ceiling] = true
		v := CeilingView{Source: p.Source, Scope: p.Scope, Currency: p.Currency, Metered: p.Metered, Per: profile.FormatDuration(p.Per), Next: p.Next, Full: !p.Fits(),
			Limit: strconv.FormatInt(p.Max, 10), Used: strconv.FormatInt(p.Count, 10)}
		if p.Currency != "" {
			v.Limit, v.Used = nano(p.Max), nano(p.Count)
		}
		out = append(out, v)
	}
	return out, err
}

func (a *Account) wallets(ctx context.Context, l ledger.Ledger, org string) ([]Wallet, error) {
	balances, err := l.Balances(ctx, org)
	out := walletsOf(balances)
	if err != nil || len(out) == 0 {
		return out, err
	}
	u, err := a.unpriced(ctx, l, org)
	if err != nil {
		return nil, err
	}
	for i := range out {
		w := &out[i]
		if w.Unpriced, err = u.lives(ctx, org, w.Currency, time.Time{}, func(r ledger.UsageRow) bool { return r.WalletUnknown > 0 }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func walletsOf(balances []ledger.Balance) []Wallet {
	of := map[string]map[string]ledger.Balance{}
	var currencies []string
	for _, b := range balances {
		if b.Kind != ledger.AccountWallet && b.Kind != ledger.AccountReceivable {
			continue
		}
		if of[b.Currency] == nil {
			of[b.Currency] = map[string]ledger.Balance{}
			currencies = append(currencies, b.Currency)
		}
		of[b.Currency][b.Kind] = b
	}
	slices.Sort(currencies)
	var out []Wallet
	for _, c := range currencies {
		w, owed := of[c][ledger.AccountWallet], of[c][ledger.AccountReceivable]
		if w.CreditsPosted == 0 && w.DebitsPosted == 0 && w.DebitsPending == 0 && owed.DebitsPosted == 0 {
			continue // looked at, never used
		}
		out = append(out, Wallet{Currency: c, Granted: nano(w.CreditsPosted), Spent: nano(w.DebitsPosted), Reserved: nano(w.DebitsPending),
			Available: nano(w.Available()), Owed: nano(owed.Owed())})
	}
	return out
}

func nano(n int64) string { return meter.Amount(n).String() }

// Bounds of what a grant says beside its amount, in bytes.
const (
	maxGrantKey  = 200
	maxGrantNote = 500
)

// Grant puts an amount such as "100 USD" into an org's wallet, once for
// each key, and returns the wallet. An empty key is drawn; the one used is
// returned, so that a grant whose answer was lost can be repeated.
func (a *Account) Grant(ctx context.Context, org, amount, key, why string) (w Wallet, used string, err error) {
	money, err := meter.ParseMoney(amount)
	if err != nil {
		return w, "", err
	}
	if money.Amount == 0 {
		return w, "", extensions.Invalid("a grant of nothing: %s", "grant an amount above zero, such as \"100 USD\"", amount)
	}
	if ledger.CheckAccount(org+"/x") != nil || len(why) > maxGrantNote || !extensions.IsText(why) || len(key) > maxGrantKey || !extensions.OneLine(key) {
		return w, "", extensions.Invalid("the grant to %q cannot be recorded",
			"name the organization, which is the part of an account before the slash (acme of acme/web); keep note and key short, and plain text", extensions.Clean(org, 80))
	}
	if used = key; used == "" {
		used = "grant-" + strings.ToLower(rand.Text())
	}
	l, err := a.books.Changer(ctx)
	if err != nil {
		return w, used, err
	}
	g := ledger.Grant{Key: used, Org: org, Currency: string(money.Currency), Amount: int64(money.Amount)}
	if why != "" {
		g.Note = ledger.NewNote("", map[string]any{"note": why})
	}
	if _, err = l.Grant(ctx, g); err != nil {
		return w, used, err
	}
	list, err := a.wallets(ctx, l, org)
	for _, w := range list {
		if w.Currency == g.Currency {
			return w, used, nil
		}
	}
	return w, used, err
}
