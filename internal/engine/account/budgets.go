package account

import (
	"context"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// BudgetSpec requests a budget. An account has at most one per name and currency.
type BudgetSpec struct {
	WholeOrg bool // for all workspaces of the account's org together
	Name     string
	Limit    string // "50 USD"; zero allows nothing
	Period   string // day | week | month, "" = for ever
	Soft     bool   // exceeding it warns instead of refusing
}

// Budgets lists the budgets of the account's org and its workspaces. A missing ledger has none.
func (a *Account) Budgets(ctx context.Context) ([]BudgetView, error) {
	l, err := a.books.Reader(ctx)
	if err != nil {
		return nil, err
	}
	list, err := a.budgets(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return a.budgetViews(ctx, l, list...)
}

func (a *Account) budgetViews(ctx context.Context, l *ledger.Ledger, list ...ledger.Budget) ([]BudgetView, error) {
	u, err := a.unpriced(ctx, l, ledger.StreamOf(a.name))
	if err != nil {
		return nil, err
	}
	var out []BudgetView
	for _, b := range list {
		v := BudgetView{Account: b.Account, Name: b.Name, Currency: b.Currency, Limit: nano(b.Limit), Hard: b.Hard, Period: b.Period,
			Spent: nano(b.Spent), Over: nano(b.Over), Reserved: nano(b.Reserved), Left: nano(b.Available()), Since: b.Since, ResetsAt: b.ResetsAt()}
		if v.Unpriced, err = u.lives(ctx, b.Account, b.Currency, b.Since, func(ledger.UsageRow) bool { return true }); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (a *Account) budgets(ctx context.Context) ([]ledger.Budget, error) {
	l, err := a.books.Reader(ctx)
	if err != nil {
		return nil, err
	}
	list, err := l.Budgets(ctx, ledger.StreamOf(a.name))
	return slices.DeleteFunc(list, ledger.Budget.Removed), err
}

func (a *Account) budgetView(ctx context.Context, l *ledger.Ledger, b ledger.Budget) (BudgetView, error) {
	views, err := a.budgetViews(ctx, l, b)
	if err != nil {
		return BudgetView{}, err
	}
	return views[0], nil
}

func (a *Account) budgetAccount(wholeOrg bool) string {
	if wholeOrg {
		return ledger.StreamOf(a.name)
	}
	return a.name
}

// SetBudget creates a budget or changes its limit, kind and period; its use stays.
func (a *Account) SetBudget(ctx context.Context, spec BudgetSpec) (BudgetView, error) {
	if err := profile.CheckName(spec.Name); err != nil {
		return BudgetView{}, err
	}
	limit, err := meter.ParseMoney(spec.Limit)
	if err != nil {
		return BudgetView{}, err
	}
	if int64(limit.Amount) == ledger.NoLimit {
		return BudgetView{}, extensions.Invalid("the limit %s of budget %s is the largest amount, which would mean no limit",
			"set a lower limit; `sandboxer ledger budget remove` removes the budget", spec.Limit, spec.Name)
	}
	l, err := a.books.Changer(ctx)
	if err != nil {
		return BudgetView{}, err
	}
	b, err := l.PutBudget(ctx, ledger.Budget{Account: a.budgetAccount(spec.WholeOrg), Name: spec.Name, Currency: string(limit.Currency),
		Limit: int64(limit.Amount), Hard: !spec.Soft, Period: spec.Period})
	if err != nil {
		return BudgetView{}, err
	}
	return a.budgetView(ctx, l, b)
}

// RemoveBudget removes a budget's limit, which is recorded. An empty currency stands for that of the only
// budget of this name.
func (a *Account) RemoveBudget(ctx context.Context, wholeOrg bool, name, currency string) (BudgetView, error) {
	list, err := a.budgets(ctx)
	if err != nil {
		return BudgetView{}, err
	}
	account := a.budgetAccount(wholeOrg)
	list = slices.DeleteFunc(list, func(b ledger.Budget) bool {
		return b.Account != account || b.Name != name || currency != "" && b.Currency != currency
	})
	switch len(list) {
	case 0:
		return BudgetView{}, extensions.Errorf(extensions.KindNotFound, "%s has no budget %q", account, extensions.Clean(name, 80)).
			WithRemedy("see `sandboxer ledger budget list`; --org selects a budget of the whole organization")
	case 1:
	default:
		var currencies []string
		for _, b := range list {
			currencies = append(currencies, b.Currency)
		}
		return BudgetView{}, extensions.Invalid("%s has several budgets %q: in %s", "choose one with --currency", account, name,
			strings.Join(currencies, ", "))
	}
	l, err := a.books.Changer(ctx)
	if err != nil {
		return BudgetView{}, err
	}
	b := list[0]
	was, err := a.budgetView(ctx, l, b)
	if err != nil {
		return was, err
	}
	b.Limit, b.Hard = ledger.NoLimit, false
	_, err = l.PutBudget(ctx, b)
	return was, err
}
