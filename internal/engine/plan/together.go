package plan

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Together sums the amounts that the sandboxes of one plan, new ones and those with a later deadline, will set
// aside. So sandboxes that are affordable one by one but not together are refused before the first is made. The
// zero value is an empty plan. It belongs to one engine, which serializes access. Each sandbox counts for its
// own org and workspace. A sandbox that several resources hold counts once, for the longest life that one of
// them requests.
type Together struct {
	all []intended
}

// intended is what one sandbox of a plan will set aside.
type intended struct {
	id      extensions.ID // of a live one; "" = a new one
	account string
	shared  string // its name, if several may hold it
	reserve ledger.Reserve
	free    []ledger.Transfer // what its plan releases
	paces   []ledger.Pace     // of the ceilings that it counts against
}

// against checks one against the limits together with the others, adds it to them if it is affordable, and
// records in its paces what the others add. A nil Together has no others.
func (t *Together) against(one intended, balances []ledger.Balance, budgets []ledger.Budget) ([]ledger.Budget, error) {
	if t == nil {
		return one.reserve.Against(one.account, balances, budgets, one.free, nil)
	}
	others := make([]intended, 0, len(t.all)+1)
	for _, o := range t.all {
		switch {
		case !o.is(one):
			others = append(others, o)
		case (o.id == "" || o.id != one.id) && o.reserve.Amount > one.reserve.Amount: // asked for by another holder
			one.reserve = o.reserve
		}
	}
	free, beside := slices.Clone(one.free), make([]ledger.Beside, 0, len(others))
	for _, o := range others {
		one.pacedBy(o)
		beside = append(beside, ledger.Beside{Account: o.account, Reserve: o.reserve})
		for _, x := range o.free {
			if !slices.ContainsFunc(free, func(y ledger.Transfer) bool { return y.ID == x.ID }) {
				free = append(free, x)
			}
		}
	}
	soft, err := one.reserve.Against(one.account, balances, budgets, free, beside)
	if err == nil {
		t.all = append(others, one)
	}
	return soft, err
}

// is reports whether both are one sandbox.
func (i intended) is(o intended) bool {
	return i.id != "" && i.id == o.id || i.shared != "" && i.shared == o.shared && i.account == o.account
}

// pacedBy adds what o counts for to the paces of i.
func (i intended) pacedBy(o intended) {
	for n := range i.paces {
		for _, p := range o.paces {
			if p.Ceiling == i.paces[n].Ceiling {
				i.paces[n].Beside += p.Adds()
			}
		}
	}
}
