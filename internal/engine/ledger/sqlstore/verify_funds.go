package sqlstore

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
)

// funds checks that transfers match the events, that accounts and budgets match the transfers, that
// nothing is overdrawn, and that nothing stays held for what has ended.
func (a *audit) funds([]chain.Head) error {
	transfers, err := selectAll(a.ctx, a.store, a.q, "transfers", transferRow, "ORDER BY id")
	if err != nil {
		return err
	}
	books := bank.NewAudit(transfers)
	a.add(books.Told(a.Moved))
	accounts, err := selectAll(a.ctx, a.store, a.q, "accounts", balanceRow, "ORDER BY id")
	if err != nil {
		return err
	}
	a.add(books.Accounts(accounts))
	over := map[string]bool{}
	err = query(a.ctx, a.store, a.q, "SELECT id FROM sandboxes WHERE state = 'destroyed'", nil, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		over[id] = true
		return err
	})
	if err != nil {
		return err
	}
	a.add(books.Over(over))
	budgets, err := selectAll(a.ctx, a.store, a.q, "budgets", budgetRow, "ORDER BY id")
	if err != nil {
		return err
	}
	a.add(books.Budgets(budgets))
	return nil
}
