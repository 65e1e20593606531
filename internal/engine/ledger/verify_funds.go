package ledger

import (
	"maps"
	"reflect"
	"slices"
)

// funds checks that transfers are those of the events, that accounts and
// budgets are what transfers make of them, that nothing is overdrawn, and that
// what is over holds nothing back.
func (a *audit) funds([]Head) error {
	transfers, err := selectAll(a.ctx, a.store, a.q, "transfers", (*Transfer).fields, "ORDER BY id")
	if err != nil {
		return err
	}
	byID, resolved := map[string]Transfer{}, map[string]bool{}
	for _, x := range transfers {
		at := x.at
		byID[x.ID] = x
		resolved[x.PendingID] = true
		told, ok := a.moved[x.ID]
		delete(a.moved, x.ID)
		if told.at = at; !ok || !reflect.DeepEqual(told, x) {
			a.problem("transfer %s is not what its event says", x.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.moved)) {
		a.problem("transfer %s is in an event and not in the ledger", id)
	}
	if err := a.balances(transfers, byID); err != nil {
		return err
	}
	if err := a.held(transfers, resolved); err != nil {
		return err
	}
	return a.limits(transfers, resolved)
}

func (a *audit) balances(transfers []Transfer, byID map[string]Transfer) error {
	stored, err := selectAll(a.ctx, a.store, a.q, "accounts", (*Balance).fields, "ORDER BY id")
	if err != nil {
		return err
	}
	want := map[string]*Balance{}
	for i := range stored {
		b := stored[i]
		want[b.ID] = &Balance{ID: b.ID, Org: b.Org, Kind: b.Kind, Currency: b.Currency}
	}
	for _, x := range transfers {
		from, to := want[x.Debit], want[x.Credit]
		if from == nil || to == nil {
			a.problem("transfer %s is between accounts that are not there", x.ID)
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
		p := byID[x.PendingID]
		if p.Kind != TransferPending || x.Amount > p.Amount || x.Debit != p.Debit || x.Credit != p.Credit {
			a.problem("transfer %s does not resolve %s", x.ID, x.PendingID)
		}
		from.DebitsPending -= p.Amount
		to.CreditsPending -= p.Amount
	}
	for _, b := range stored {
		if b != *want[b.ID] {
			a.problem("account %s is not the sum of its transfers", b.ID)
		}
		if b.Kind == AccountWallet && b.Available() < 0 {
			a.problem("account %s is overdrawn", b.ID)
		}
	}
	return nil
}

// held finds funds that are held back for what is over.
func (a *audit) held(transfers []Transfer, resolved map[string]bool) error {
	over := map[string]bool{}
	err := query(a.ctx, a.store, a.q, "SELECT id FROM sandboxes WHERE state = 'destroyed'", nil, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		over[id] = true
		return err
	})
	for _, x := range transfers {
		if x.Kind == TransferPending && !resolved[x.ID] && over[x.Subject] {
			a.problem("sandbox %s is over and %s still holds funds back", x.Subject, x.ID)
		}
	}
	return err
}

func (a *audit) limits(transfers []Transfer, resolved map[string]bool) error {
	stored, err := selectAll(a.ctx, a.store, a.q, "budgets", (*Budget).fields, "ORDER BY id")
	if err != nil {
		return err
	}
	reserved := map[string]int64{}
	for _, x := range transfers {
		if x.Kind != TransferPending || resolved[x.ID] {
			continue
		}
		for _, id := range x.Budgets {
			reserved[id] += x.Amount
		}
	}
	for _, b := range stored {
		if b.Reserved != reserved[b.ID] {
			a.problem("budget %s holds %d, and %d is set aside", b.ID, b.Reserved, reserved[b.ID])
		}
	}
	return nil
}
