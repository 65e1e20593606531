package engine

import (
	"slices"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Together keeps what the sandboxes of one plan are going to set aside, new
// ones and those whose end is to be later, so that several which are affordable
// one by one, and not all of them, are refused before the first is made. The
// zero value is a plan of none; it may be used from several goroutines. Each
// counts where it is paid: with others of its org, and of its workspace.
type Together struct {
	mu  sync.Mutex
	all []intended
}

// intended is what one sandbox of a plan is going to set aside.
type intended struct {
	id      ID // of one that lives; "" = a new one
	account string
	reserve ledger.Reserve
	free    []ledger.Transfer // what its plan releases
	paces   []ledger.Pace     // of the ceilings that it counts against
}

// against holds what is intended against the limits and the others, and counts
// it among them if it is affordable. What they add to its paces it notes in
// those. A nil Together has no others.
func (t *Together) against(one intended, balances []ledger.Balance, budgets []ledger.Budget) ([]ledger.Budget, error) {
	if t == nil {
		return one.reserve.Against(one.account, balances, budgets, one.free, nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(t.all), func(o intended) bool { return o.id != "" && o.id == one.id })
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

// pacedBy adds what another one counts for to the paces of both.
func (i intended) pacedBy(o intended) {
	for n := range i.paces {
		for _, p := range o.paces {
			if p.Ceiling == i.paces[n].Ceiling {
				i.paces[n].Beside += p.Adds()
			}
		}
	}
}
