package bank

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Turn is what a change of a sandbox means for its money.
type Turn struct {
	Key string // of the change; prefix of its transfers' ids
	// Payer pays for the life so far; see the ledger's Sandbox.
	Payer string
	// Ends says that the meter was closed, with Charges, or that the life ended without a meter.
	Ends    bool
	Charges []Charge
	// Unresolved says that it ends and its cost will never be known.
	Unresolved bool
	// Reserve is set aside for what goes on or begins; nil = nothing.
	Reserve *Reserve
}

// Change settles what is held for a life that ends, and then reserves anew. Funds freed in between pay
// debts first. It returns who pays for what goes on.
func (b *Books) Change(t Turn) (payer string, err error) {
	payer = t.Payer
	switch {
	case t.Unresolved:
		payer, err = "", b.expose(t.Key)
	case t.Ends:
		payer, err = "", b.resolve(t.Key, t.Payer, t.Charges)
	}
	if err == nil {
		err = b.payFreed(t.Key, 0)
	}
	if err != nil || t.Unresolved || t.Reserve == nil {
		return payer, err
	}
	before := len(b.posted)
	if payer, err = b.reserve(t.Key, payer, *t.Reserve); err != nil {
		return payer, err
	}
	return payer, b.payFreed(t.Key+"/rest", before)
}

// resolve settles the reservations of a sandbox whose meter was closed with charges, or which never had
// one: it posts to each what was used of its account; the latest one also takes the excess.
func (b *Books) resolve(key, payer string, charges []Charge) error {
	used, err := b.charged(payer, charges)
	if err != nil {
		return err
	}
	last := map[string]int{} // by account
	for i, p := range b.held {
		last[p.Debit] = i
	}
	for i, p := range b.held {
		x := Transfer{ID: fmt.Sprintf("%s/resolve/%d", key, i), Kind: TransferPost, PendingID: p.ID, Debit: p.Debit, Credit: p.Credit,
			Amount: min(p.Amount, used[p.Debit]), Subject: p.Subject, Budgets: p.Budgets}
		if x.Amount == 0 {
			x.Kind = TransferVoid
		}
		used[p.Debit] -= x.Amount
		if err := b.move(x, p.Amount); err != nil {
			return err
		}
		over := int64(0)
		if i == last[p.Debit] {
			over, used[p.Debit] = used[p.Debit], 0
		}
		b.spend(p, x.Amount, over)
		if err := b.beyond(key, p.Debit, over); err != nil {
			return err
		}
	}
	b.held = nil
	return b.unreserved(key, used)
}

// charged sums the charges of a life by the account that pays them.
func (b *Books) charged(payer string, charges []Charge) (map[string]int64, error) {
	used := map[string]int64{}
	for _, c := range charges {
		if c.Amount == 0 {
			continue
		}
		from := AccountID(b.org(), pays(payer, b.held, c.Currency, c.Memo), c.Currency)
		if c.Amount > math.MaxInt64-used[from] {
			return nil, fault.Errorf(extensions.KindInvalid, "the charges add up to more than the largest amount")
		}
		used[from] += c.Amount
	}
	return used, nil
}

// unreserved books usage that has no reservation and counts it in the budgets: its price was unknown, it
// was unforeseeable, its currency was unexpected, or another ledger began it.
func (b *Books) unreserved(key string, used map[string]int64) error {
	maps.DeleteFunc(used, func(_ string, n int64) bool { return n == 0 })
	for _, account := range slices.Sorted(maps.Keys(used)) {
		b.spend(Transfer{Debit: account}, 0, used[account])
		if err := b.beyond(key, account, used[account]); err != nil {
			return err
		}
	}
	return nil
}

// beyond books usage of an account above its reservation: from what is free in the wallet, then as
// receivable, or as a memo. No usage is lost and no wallet overdrawn.
func (b *Books) beyond(key, account string, amount int64) error {
	kind, currency := kindOf(account), currencyOf(account)
	free := b.balance(kind, currency)
	paid := amount
	if kind == AccountWallet {
		paid = min(amount, max(0, free.Available()))
	} else if amount > 0 {
		paid = min(amount, math.MaxInt64-free.DebitsPosted-free.DebitsPending) // a full memo must not block an end
	}
	if err := b.direct(key, kind, currency, paid); err != nil || kind != AccountWallet {
		return err
	}
	return b.direct(key, AccountReceivable, currency, amount-paid)
}

func (b *Books) direct(key, payer, currency string, amount int64) error {
	if amount == 0 {
		return nil
	}
	x := Transfer{ID: key + "/beyond/" + payer + ":" + currency, Kind: TransferDirect, Amount: amount, Subject: b.subject}
	x.Debit, x.Credit = b.sides(payer, currency)
	return b.move(x, 0)
}

// expose gives up a sandbox whose fate will never be known: it frees its reservations and records them as
// what it may have cost.
func (b *Books) expose(key string) error {
	held := b.held
	if err := b.release(key, all(held)); err != nil {
		return err
	}
	b.held = nil
	for i, p := range held {
		memo := b.sure(AccountExposure, currencyOf(p.Debit))
		x := Transfer{ID: fmt.Sprintf("%s/exposure/%d", key, i), Kind: TransferDirect, Debit: memo, Credit: memo, Amount: p.Amount,
			Subject: p.Subject}
		if err := b.move(x, 0); err != nil {
			return err
		}
	}
	return nil
}
