package ledger

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// unresolved selects the reservations of a sandbox that still hold something.
const unresolved = "WHERE subject = ? AND kind = 'pending' AND NOT EXISTS (SELECT 1 FROM transfers r WHERE r.pending_id = transfers.id) ORDER BY created_at, id"

// Held implements Ledger.
func (s *store) Held(ctx context.Context, id extensions.ID) ([]Transfer, error) {
	return readAll(ctx, s, "transfers", (*Transfer).fields, unresolved, string(id))
}

func (t *tx) held(subject string) ([]Transfer, error) {
	return selectAll(t.ctx, t.store, t.sql, "transfers", (*Transfer).fields, unresolved, subject)
}

// pays is the kind of account that a charge of a life comes from: the wallet,
// where platform credit pays for it and the charge is no memo; else the memo in
// which something is set aside, that of the payer, or the charge's own. Of a
// life whose payer nobody decided, what is set aside tells.
func pays(payer string, held []Transfer, currency, memo string) string {
	credit := payer == AccountWallet || payer == "" && slices.ContainsFunc(held, ofWallet)
	if credit && memo == "" {
		return AccountWallet
	}
	if i := memoIn(held, currency); i >= 0 {
		return kindOf(held[i].Debit)
	}
	if payer != "" && payer != AccountWallet {
		return payer
	}
	return memoKind(memo)
}

func ofWallet(x Transfer) bool { return kindOf(x.Debit) == AccountWallet }

// memoIn is the first reservation in the currency that no wallet holds; -1 = none.
func memoIn(held []Transfer, currency string) int {
	return slices.IndexFunc(held, func(x Transfer) bool { return !ofWallet(x) && currencyOf(x.Debit) == currency })
}

// charged adds up the charges of a life by the account that each comes from.
func charged(row Sandbox, held []Transfer, charges []chargeFact) (map[string]int64, error) {
	used := map[string]int64{}
	for _, c := range charges {
		if c.Amount.n == 0 {
			continue
		}
		from := accountID(StreamOf(row.Account), pays(row.Payer, held, c.Currency, c.Memo), c.Currency)
		if c.Amount.n > math.MaxInt64-used[from] {
			return nil, failuref(extensions.KindInvalid, "what was used adds up to more than can be told")
		}
		used[from] += c.Amount.n
	}
	return used, nil
}

// memoKind is the kind of account that a charge is a memo of; "" is of the
// user's own key, who else would be sent the bill.
func memoKind(memo string) string {
	if memo == "" || strings.HasPrefix(memo, AccountBYOK+":") {
		return AccountBYOK
	}
	return AccountInfra
}

// resolve settles what was set aside for a sandbox whose meter was closed with
// the charges, or which never had one: each reservation is posted with what
// was used of its account, and the latest takes note of what is over.
func (t *tx) resolve(row Sandbox, key string, charges []chargeFact) ([]Transfer, error) {
	pending, err := t.held(string(row.ID))
	if err != nil {
		return nil, err
	}
	used, err := charged(row, pending, charges)
	if err != nil {
		return nil, err
	}
	last := map[string]int{} // by account
	for i, p := range pending {
		last[p.Debit] = i
	}
	var out []Transfer
	for i, p := range pending {
		x := Transfer{ID: fmt.Sprintf("%s/resolve/%d", key, i), Kind: TransferPost, PendingID: p.ID, Debit: p.Debit, Credit: p.Credit,
			Amount: min(p.Amount, used[p.Debit]), Subject: p.Subject, Budgets: p.Budgets}
		if x.Amount == 0 {
			x.Kind = TransferVoid
		}
		used[p.Debit] -= x.Amount
		if err := t.move(x, p.Amount); err != nil {
			return nil, err
		}
		out = append(out, x)
		over := int64(0)
		if i == last[p.Debit] {
			over, used[p.Debit] = used[p.Debit], 0
		}
		if err := t.spend(row.Account, p, x.Amount, over); err != nil {
			return nil, err
		}
		more, err := t.beyond(row, key, p.Debit, over)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	more, err := t.unreserved(row, key, used)
	return append(out, more...), err
}

// An account's id is its org, kind and currency; the latter two have no colon.
func currencyOf(account string) string { return account[strings.LastIndexByte(account, ':')+1:] }

func kindOf(account string) string {
	rest := account[:max(0, strings.LastIndexByte(account, ':'))]
	return rest[strings.LastIndexByte(rest, ':')+1:]
}

// unreserved books, and counts in the budgets, what was used though nothing was
// set aside for it: its price was not known then, nobody could foresee it, it is
// in a currency that nobody expected, or another ledger began it.
func (t *tx) unreserved(row Sandbox, key string, used map[string]int64) ([]Transfer, error) {
	maps.DeleteFunc(used, func(_ string, n int64) bool { return n == 0 })
	var out []Transfer
	for _, account := range slices.Sorted(maps.Keys(used)) {
		if err := t.spend(row.Account, Transfer{Debit: account}, 0, used[account]); err != nil {
			return nil, err
		}
		more, err := t.beyond(row, key, account, used[account])
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// beyond books what was used of an account above what had been set aside: from
// what is free in the wallet, the rest as receivable, or as a memo. No usage is
// lost, no wallet overdrawn.
func (t *tx) beyond(row Sandbox, key, account string, amount int64) ([]Transfer, error) {
	org, kind, currency := StreamOf(row.Account), kindOf(account), currencyOf(account)
	type from struct {
		payer  string
		amount int64
	}
	book := []from{{kind, amount}}
	if kind == AccountWallet {
		wallet, err := t.lookUp(org, AccountWallet, currency)
		if err != nil {
			return nil, err
		}
		paid := min(amount, max(0, wallet.Available()))
		book = []from{{AccountWallet, paid}, {AccountReceivable, amount - paid}}
	} else if amount > 0 {
		memo, err := t.lookUp(org, kind, currency)
		if err != nil {
			return nil, err
		}
		book[0].amount = min(amount, math.MaxInt64-memo.DebitsPosted-memo.DebitsPending) // a full memo holds up nobody's end
	}
	var out []Transfer
	for _, b := range book {
		if b.amount == 0 {
			continue
		}
		x := Transfer{ID: key + "/beyond/" + b.payer + ":" + currency, Kind: TransferDirect, Amount: b.amount, Subject: string(row.ID)}
		var err error
		if x.Debit, x.Credit, err = t.sides(org, b.payer, currency); err != nil {
			return nil, err
		}
		if err := t.move(x, 0); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// freed pays what the org owes from what the transfers, of one change, have
// made free in its wallets.
func (t *tx) freed(row Sandbox, key string, transfers []Transfer) ([]Transfer, error) {
	var out []Transfer
	paid := map[string]bool{}
	for _, x := range transfers {
		currency := currencyOf(x.Debit)
		if x.PendingID == "" || !ofWallet(x) || paid[currency] {
			continue
		}
		paid[currency] = true
		more, err := t.payOwed(StreamOf(row.Account), currency, key+"/owed/"+currency, string(row.ID))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// expose gives up a sandbox of which nobody will ever know: what was set aside
// is free again, and noted as what it may have cost.
func (t *tx) expose(row Sandbox, key string) ([]Transfer, error) {
	held, err := t.held(string(row.ID))
	if err != nil {
		return nil, err
	}
	out, err := t.release(row.Account, key, all(held))
	if err != nil {
		return nil, err
	}
	for i, p := range held {
		org, currency := StreamOf(row.Account), currencyOf(p.Debit)
		memo, err := t.balance(org, AccountExposure, currency)
		if err != nil {
			return nil, err
		}
		x := Transfer{ID: fmt.Sprintf("%s/exposure/%d", key, i), Kind: TransferDirect, Debit: memo.ID, Credit: memo.ID, Amount: p.Amount, Subject: p.Subject}
		if err := t.move(x, 0); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// spend counts what was used of a reservation in the budgets of an account, and
// what is over: in all there are, as one may have been set since. Where it was
// held it is held no more.
func (t *tx) spend(account string, p Transfer, used, over int64) error {
	bs, err := t.budgetsOf(account, currencyOf(p.Debit))
	if err != nil {
		return err
	}
	for _, b := range bs {
		holds := slices.Contains(p.Budgets, b.ID)
		if !holds && used == 0 && over == 0 {
			continue
		}
		if holds {
			b.Reserved -= p.Amount
		}
		b.Spent = add(b.Spent, add(used, over))
		b.Over = add(b.Over, over)
		if err := t.update("ledger.budget", "budgets", b.fields(), "id = ?", b.ID); err != nil {
			return err
		}
	}
	return nil
}
