package bank

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Audit compares an org's books with the transfers that made them. Each method returns what does not
// match.
type Audit struct {
	transfers []Transfer
	byID      map[string]Transfer
	resolved  map[string]bool
}

// NewAudit takes all transfers of a ledger.
func NewAudit(transfers []Transfer) *Audit {
	a := &Audit{transfers: transfers, byID: map[string]Transfer{}, resolved: map[string]bool{}}
	for _, x := range transfers {
		a.byID[x.ID] = x
		a.resolved[x.PendingID] = true
	}
	return a
}

// Told compares the transfers with those in the events, by id.
func (a *Audit) Told(events map[string]Transfer) (problems []string) {
	for _, x := range a.transfers {
		told, ok := events[x.ID]
		if told.At = x.At; !ok || !reflect.DeepEqual(told, x) {
			problems = append(problems, fmt.Sprintf("transfer %s differs from its event", x.ID))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(events)) {
		if _, ok := a.byID[id]; !ok {
			problems = append(problems, fmt.Sprintf("transfer %s is in an event but not in the ledger", id))
		}
	}
	return problems
}

// Accounts requires each account to be the sum of its transfers and no wallet to be overdrawn.
func (a *Audit) Accounts(stored []Balance) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	want := map[string]*Balance{}
	for _, b := range stored {
		want[b.ID] = &Balance{ID: b.ID, Org: b.Org, Kind: b.Kind, Currency: b.Currency}
	}
	for _, x := range a.transfers {
		from, to := want[x.Debit], want[x.Credit]
		if from == nil || to == nil {
			problem("transfer %s refers to a missing account", x.ID)
			continue
		}
		if x.Kind == TransferPending {
			from.DebitsPending += x.Amount
			to.CreditsPending += x.Amount
			continue
		}
		from.DebitsPosted += x.Amount
		to.CreditsPosted += x.Amount
		if x.PendingID == "" {
			continue
		}
		p := a.byID[x.PendingID]
		if p.Kind != TransferPending || x.Amount > p.Amount || x.Debit != p.Debit || x.Credit != p.Credit {
			problem("transfer %s does not resolve %s", x.ID, x.PendingID)
		}
		from.DebitsPending -= p.Amount
		to.CreditsPending -= p.Amount
	}
	for _, b := range stored {
		if b != *want[b.ID] {
			problem("account %s differs from the sum of its transfers", b.ID)
		}
		if b.Kind == AccountWallet && b.Available() < 0 {
			problem("account %s is overdrawn", b.ID)
		}
	}
	return problems
}

// Over finds funds held for subjects that have ended.
func (a *Audit) Over(over map[string]bool) (problems []string) {
	for _, x := range a.transfers {
		if a.open(x) && over[x.Subject] {
			problems = append(problems, fmt.Sprintf("sandbox %s has ended, but %s still holds its funds", x.Subject, x.ID))
		}
	}
	return problems
}

func (a *Audit) open(x Transfer) bool { return x.Kind == TransferPending && !a.resolved[x.ID] }

// Budgets requires each budget to hold what is set aside below it.
func (a *Audit) Budgets(stored []Budget) (problems []string) {
	reserved := map[string]int64{}
	for _, x := range a.transfers {
		if !a.open(x) {
			continue
		}
		for _, id := range x.Budgets {
			reserved[id] += x.Amount
		}
	}
	for _, b := range stored {
		if b.Reserved != reserved[b.ID] {
			problems = append(problems, fmt.Sprintf("budget %s holds %d, but %d is set aside", b.ID, b.Reserved, reserved[b.ID]))
		}
	}
	return problems
}
