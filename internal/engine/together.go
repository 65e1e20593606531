package engine

import (
	"slices"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Together keeps what the sandboxes of one plan are going to set aside, so
// that several which are affordable one by one, and not all of them, are
// refused before the first is made. The zero value is a plan of none; it may
// be used from several goroutines, and is of one account.
type Together struct {
	mu       sync.Mutex
	reserves []ledger.Reserve
	free     []ledger.Transfer // what their plans release
}

// against holds r against the limits and the others, and counts it among them
// if it is affordable. A nil Together has no others.
func (t *Together) against(r ledger.Reserve, account string, balances []ledger.Balance, budgets []ledger.Budget, free []ledger.Transfer) ([]ledger.Budget, error) {
	if t == nil {
		return r.Against(account, balances, budgets, free, nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	free = slices.Clone(free)
	for _, x := range t.free {
		if !slices.ContainsFunc(free, func(y ledger.Transfer) bool { return y.ID == x.ID }) {
			free = append(free, x)
		}
	}
	soft, err := r.Against(account, balances, budgets, free, t.reserves)
	if err == nil {
		t.reserves, t.free = append(t.reserves, r), free
	}
	return soft, err
}
