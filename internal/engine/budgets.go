package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// BudgetSpec asks for a budget. Of one name and currency an account has one.
type BudgetSpec struct {
	WholeOrg bool // for all workspaces of the account's org together
	Name     string
	Limit    string // "50 USD"; zero is nothing at all
	Period   string // day | week | month, "" = for ever
	Soft     bool   // passing it is told, not refused
}

// Budgets lists the budgets of the account's org and of its workspaces. A
// missing ledger has none.
func (e *Engine) Budgets(ctx context.Context) ([]BudgetView, error) {
	l, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	list, err := e.budgets(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return e.budgetViews(ctx, l, list...)
}

func (e *Engine) budgetViews(ctx context.Context, l ledger.Ledger, list ...ledger.Budget) ([]BudgetView, error) {
	u, err := e.unpriced(ctx, l, ledger.StreamOf(e.account))
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

func (e *Engine) budgets(ctx context.Context) ([]ledger.Budget, error) {
	l, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	list, err := l.Budgets(ctx, ledger.StreamOf(e.account))
	return slices.DeleteFunc(list, ledger.Budget.Removed), err
}

func (e *Engine) budgetView(ctx context.Context, l ledger.Ledger, b ledger.Budget) (BudgetView, error) {
	views, err := e.budgetViews(ctx, l, b)
	if err != nil {
		return BudgetView{}, err
	}
	return views[0], nil
}

func (e *Engine) budgetAccount(wholeOrg bool) string {
	if wholeOrg {
		return ledger.StreamOf(e.account)
	}
	return e.account
}

// SetBudget makes a budget or changes its limit, kind and period; what counts
// against it stays.
func (e *Engine) SetBudget(ctx context.Context, spec BudgetSpec) (BudgetView, error) {
	if err := CheckName(spec.Name); err != nil {
		return BudgetView{}, err
	}
	limit, err := meter.ParseMoney(spec.Limit)
	if err != nil {
		return BudgetView{}, err
	}
	if int64(limit.Amount) == ledger.NoLimit {
		return BudgetView{}, invalid("the limit %s of the budget %s is the largest amount there is, which stands for no limit",
			"give a lower limit; `sandboxer ledger budget remove` takes one away", spec.Limit, spec.Name)
	}
	l, err := e.changer(ctx)
	if err != nil {
		return BudgetView{}, err
	}
	b, err := l.PutBudget(ctx, ledger.Budget{Account: e.budgetAccount(spec.WholeOrg), Name: spec.Name, Currency: string(limit.Currency),
		Limit: int64(limit.Amount), Hard: !spec.Soft, Period: spec.Period})
	if err != nil {
		return BudgetView{}, err
	}
	return e.budgetView(ctx, l, b)
}

// RemoveBudget takes a budget's limit away, which is recorded. An empty
// currency is that of the only budget of this name.
func (e *Engine) RemoveBudget(ctx context.Context, wholeOrg bool, name, currency string) (BudgetView, error) {
	list, err := e.budgets(ctx)
	if err != nil {
		return BudgetView{}, err
	}
	account := e.budgetAccount(wholeOrg)
	list = slices.DeleteFunc(list, func(b ledger.Budget) bool {
		return b.Account != account || b.Name != name || currency != "" && b.Currency != currency
	})
	switch len(list) {
	case 0:
		return BudgetView{}, extensions.Errorf(extensions.KindNotFound, "%s has no budget %q", account, extensions.Clean(name, 80)).
			WithRemedy("see `sandboxer ledger budget list`; with --org a budget of the whole organisation is meant")
	case 1:
	default:
		var currencies []string
		for _, b := range list {
			currencies = append(currencies, b.Currency)
		}
		return BudgetView{}, invalid("%s has several budgets %q: in %s", "say which with --currency", account, name, strings.Join(currencies, ", "))
	}
	l, err := e.changer(ctx)
	if err != nil {
		return BudgetView{}, err
	}
	b := list[0]
	was, err := e.budgetView(ctx, l, b)
	if err != nil {
		return was, err
	}
	b.Limit, b.Hard = ledger.NoLimit, false
	_, err = l.PutBudget(ctx, b)
	return was, err
}
