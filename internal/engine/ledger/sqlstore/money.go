package sqlstore

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// held selects the unresolved reservations of a subject.
const held = "WHERE subject = ? AND kind = 'pending' AND NOT EXISTS (SELECT 1 FROM transfers r WHERE r.pending_id = transfers.id) ORDER " +
	"BY created_at, id"

// Held implements Ledger.
func (s *store) Held(ctx context.Context, id extensions.ID) ([]bank.Transfer, error) {
	return readAll(ctx, s, "transfers", transferRow, held, string(id))
}

// books opens the books of a sandbox; they are empty if the change moves no money. The caller holds the
// org's lock.
func (t *tx) books(row ledger.Sandbox, moves bool) (*bank.Books, error) {
	if !moves {
		return bank.Open(row.Account, string(row.ID), t.now, bank.Stored{}), nil
	}
	return t.openBooks(row.Account, string(row.ID))
}

func (t *tx) openBooks(account, subject string) (*bank.Books, error) {
	org := ledger.StreamOf(account)
	var s bank.Stored
	var err error
	if s.Budgets, err = selectAll(t.ctx, t.store, t.sql, "budgets", budgetRow,
		"WHERE (account = ? OR account = ?) ORDER BY id"+t.dialect.forUpdate, org, account); err != nil {
		return nil, err
	}
	if s.Balances, err = selectAll(t.ctx, t.store, t.sql, "accounts", balanceRow, "WHERE org = ? ORDER BY id"+t.dialect.forUpdate,
		org); err != nil {
		return nil, err
	}
	if s.Held, err = selectAll(t.ctx, t.store, t.sql, "transfers", transferRow, held, subject); err != nil {
		return nil, err
	}
	return bank.Open(account, subject, t.now, s), nil
}

// settle applies a change to the meter and then, with the resulting charges, to the money.
func (t *tx) settle(row *ledger.Sandbox, c ledger.Change) (*chain.MeterFact, []bank.Transfer, error) {
	over := lifecycle.Terminal(row.State)
	books, err := t.books(*row, over || c.Unresolved || c.Meter.Close != nil || c.Reserve != nil)
	if err != nil {
		return nil, nil, err
	}
	fact, charges, err := t.meter(*row, c.Meter, books.Held())
	if err != nil {
		return nil, nil, err
	}
	funds, err := t.turn(row, books, bank.Turn{Key: c.Key, Ends: over || fact != nil && fact.Charged != "", Charges: charges,
		Unresolved: c.Unresolved, Reserve: c.Reserve})
	return fact, funds, err
}

// turn lets bank decide and writes what it posts.
func (t *tx) turn(row *ledger.Sandbox, books *bank.Books, turn bank.Turn) (_ []bank.Transfer, err error) {
	turn.Payer = row.Payer
	if row.Payer, err = books.Change(turn); err != nil {
		return nil, err
	}
	return t.post(books)
}

// post writes what was posted and returns the transfers.
func (t *tx) post(books *bank.Books) ([]bank.Transfer, error) {
	p := books.Posted()
	for _, a := range p.Made {
		if err := t.insert("ledger.account", "accounts", balanceRow(&a)); err != nil {
			return nil, err
		}
	}
	for _, a := range p.Changed {
		if err := t.update("ledger.account", "accounts", balanceRow(&a), "id = ?", a.ID); err != nil {
			return nil, err
		}
	}
	for _, b := range p.Budgets {
		if err := t.update("ledger.budget", "budgets", budgetRow(&b), "id = ?", b.ID); err != nil {
			return nil, err
		}
	}
	for _, x := range p.Transfers {
		if err := t.insert("ledger.transfer", "transfers", transferRow(&x)); err != nil {
			return nil, t.clash(err, x.ID)
		}
	}
	return p.Transfers, nil
}

// Grant implements Ledger.
func (s *store) Grant(ctx context.Context, g ledger.Grant) (bank.Balance, error) {
	if err := plain("key", g.Key); err != nil {
		return bank.Balance{}, err
	}
	if err := g.Check(); err != nil {
		return bank.Balance{}, err
	}
	var wallet bank.Balance
	id := bank.AccountID(g.Org, bank.AccountWallet, g.Currency)
	err := s.write(ctx, func(t *tx) error {
		if err := t.queue(g.Org); err != nil {
			return err
		}
		_, done, err := t.replayed(g.Key)
		switch {
		case err != nil:
		case done:
			err = t.granted(g, id)
		default:
			err = t.grant(g, id)
		}
		if err != nil {
			return err
		}
		rows, err := selectAll(t.ctx, t.store, t.sql, "accounts", balanceRow, "WHERE id = ?", id)
		wallet, err = one(rows, err, "account", id)
		return err
	})
	return wallet, err
}

func (t *tx) grant(g ledger.Grant, wallet string) error {
	books, err := t.openBooks(g.Org, wallet)
	if err == nil {
		err = books.Grant(g.Key, g.Currency, g.Amount)
	}
	if err != nil {
		return err
	}
	posted, err := t.post(books)
	if err != nil {
		return err
	}
	return t.append(fact{account: g.Org, kind: g.Note.Typed("funds.granted"), subject: wallet, operation: g.Key,
		data: chain.Data{Funds: posted, Note: g.Note.Data}})
}

// granted checks that the key was used before for this same grant.
func (t *tx) granted(g ledger.Grant, wallet string) error {
	before, err := selectAll(t.ctx, t.store, t.sql, "transfers", transferRow, "WHERE id = ?", g.Key)
	if err != nil || len(before) == 1 && before[0].Credit == wallet && before[0].Amount == g.Amount {
		return err
	}
	return g.Clash()
}

// PutBudget implements Ledger.
func (s *store) PutBudget(ctx context.Context, b bank.Budget) (bank.Budget, error) {
	for _, r := range []struct{ name, value string }{{"account", b.Account}, {"name of the budget", b.Name}, {"currency", b.Currency}} {
		if err := errors.Join(plain(r.name, r.value), short(r.name, r.value, maxName)); err != nil {
			return b, err
		}
	}
	if err := b.Check(); err != nil {
		return b, err
	}
	err := s.write(ctx, func(t *tx) error {
		if err := t.queue(b.Account); err != nil {
			return err
		}
		old, err := selectAll(t.ctx, t.store, t.sql, "budgets", budgetRow, "WHERE id = ?"+t.dialect.forUpdate,
			bank.BudgetID(b.Account, b.Name, b.Currency))
		switch {
		case err != nil:
			return err
		case len(old) == 0:
			b = b.Set(nil, t.now)
			err = t.insert("ledger.budget", "budgets", budgetRow(&b))
		default:
			b = b.Set(&old[0], t.now)
			err = t.update("ledger.budget", "budgets", budgetRow(&b), "id = ?", b.ID)
		}
		if err != nil {
			return err
		}
		kind := "budget.set"
		if b.Removed() {
			kind = "budget.removed"
		}
		return t.append(fact{account: b.Account, kind: kind, subject: b.ID, data: chain.Data{Budget: &b}})
	})
	return b, err
}

// Balances implements Ledger.
func (s *store) Balances(ctx context.Context, org string) ([]bank.Balance, error) {
	return readAll(ctx, s, "accounts", balanceRow, "WHERE org = ? ORDER BY id", org)
}

// Budgets implements Ledger.
func (s *store) Budgets(ctx context.Context, org string) ([]bank.Budget, error) {
	bs, err := readAll(ctx, s, "budgets", budgetRow, "WHERE org = ? ORDER BY id", org)
	for i := range bs {
		bs[i] = bs[i].At(s.now())
	}
	return bs, err
}
