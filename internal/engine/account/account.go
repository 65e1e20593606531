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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// View is what an account has, and its limits.
type View struct {
	Account   string // org/workspace
	Org       string // owner of the wallets
	Workspace string
	Wallets   []Wallet // by currency
	Budgets   []BudgetView
	Ceilings  []CeilingView
	Live      int64 // the account's sandboxes that are not destroyed
}

// Wallet is an org's prepaid credit in one currency. Amounts are decimal strings; Available = Granted -
// Spent - Reserved.
type Wallet struct {
	Currency  string
	Granted   string
	Spent     string
	Reserved  string // held for live sandboxes
	Available string
	Owed      string // receivable: usage beyond what the wallet had
	// Unpriced counts lives for which the wallet pays something at an unknown price. No amount includes
	// that.
	Unpriced int64
}

// CeilingView is a ceiling with its use. Limit and Used are decimal strings if it limits money; otherwise they
// count sandboxes.
type CeilingView struct {
	Source   string // who set it: "policy.acme"
	Scope    string // org/workspace, or the org
	Currency string // "" = it limits how many sandboxes begin
	Metered  bool   // counts only places that bill
	Limit    string
	Used     string
	Per      string // window: "10m"
	// Next is when there will be room again. Zero if there is room now, or if room needs a live sandbox to
	// end or a higher ceiling.
	Next time.Time
	Full bool // nothing more fits now
}

// BudgetView is a budget with its use. Amounts are decimal strings; Left = Limit - Spent - Reserved, negative
// above the limit.
type BudgetView struct {
	Account  string // org/workspace, or the org
	Name     string
	Currency string
	Limit    string
	Hard     bool
	Period   string // day | week | month, "" = for ever
	Spent    string // in the period
	Over     string // part of Spent that exceeded its reservations
	Reserved string
	Left     string
	Since    time.Time // zero = for ever
	ResetsAt time.Time // zero = never
	// Unpriced counts the lives, in the period or running, with a charge of unknown price. No amount
	// includes that.
	Unpriced int64
}

// View reads the account's funds and limits. It writes nothing; without a ledger, the account has nothing.
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

// ceilingViews returns the ceilings of a create at a place that bills, each once.
func (a *Account) ceilingViews(ctx context.Context, l *ledger.Ledger) ([]CeilingView, error) {
	paces, err := l.Paces(ctx, plan.Ceilings(a.catalog, a.name, true), nil)
	var out []CeilingView
	seen := map[ledger.Ceiling]bool{}
	for _, p := range paces {
		if seen[p.Ceiling] {
			continue
		}
		seen[p.Ceiling] = true
		v := CeilingView{Source: p.Source, Scope: p.Scope, Currency: p.Currency, Metered: p.Metered, Per: profile.FormatDuration(p.Per),
			Next: p.Next, Full: !p.Fits(),
			Limit: strconv.FormatInt(p.Max, 10), Used: strconv.FormatInt(p.Count, 10)}
		if p.Currency != "" {
			v.Limit, v.Used = nano(p.Max), nano(p.Count)
		}
		out = append(out, v)
	}
	return out, err
}

func (a *Account) wallets(ctx context.Context, l *ledger.Ledger, org string) ([]Wallet, error) {
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
			continue // shown, never used
		}
		out = append(out, Wallet{Currency: c, Granted: nano(w.CreditsPosted), Spent: nano(w.DebitsPosted), Reserved: nano(w.DebitsPending),
			Available: nano(w.Available()), Owed: nano(owed.Owed())})
	}
	return out
}

func nano(n int64) string { return meter.Amount(n).String() }

// Limits of a grant's texts, in bytes.
const (
	maxGrantKey  = 200
	maxGrantNote = 500
)

// Grant adds an amount such as "100 USD" to an org's wallet, once per key, and returns the wallet. An
// empty key is replaced by a random one. The key used is returned, so that a grant whose answer was lost
// can be repeated.
func (a *Account) Grant(ctx context.Context, org, amount, key, why string) (w Wallet, used string, err error) {
	money, err := meter.ParseMoney(amount)
	if err != nil {
		return w, "", err
	}
	if money.Amount == 0 {
		return w, "", extensions.Invalid("a grant must be positive, not %s", "grant a positive amount, such as \"100 USD\"", amount)
	}
	if ledger.CheckAccount(org+"/x") != nil || len(why) > maxGrantNote || !extensions.IsText(why) || len(key) > maxGrantKey ||
		!extensions.OneLine(key) {
		return w, "", extensions.Invalid("the grant to %q cannot be recorded",
			"name the organization, the part of an account before the slash (acme in acme/web); keep note and key short plain text",
			extensions.Clean(org, 80))
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
