package ledger

import (
	"context"
	"fmt"
	"maps"
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

// resolve settles what was set aside for a sandbox whose meter was closed with
// the charges, or which never had one.
func (t *tx) resolve(row Sandbox, key string, charges []chargeFact) ([]Transfer, error) {
	pending, err := t.held(string(row.ID))
	if err != nil {
		return nil, err
	}
	used := map[string]int64{} // of the wallet; own keys and places cost what others are paid
	wallet := len(pending) > 0 && strings.Contains(pending[0].Debit, ":"+AccountWallet+":")
	for _, c := range charges {
		if !wallet || c.Memo == "" {
			used[c.Currency] += c.Amount
		}
	}
	if len(pending) == 0 {
		return t.unreserved(row, key, used)
	}
	last := map[string]int{} // the reservation that what is over is noted beside, by currency
	for i, p := range pending {
		last[currencyOf(p.Debit)] = i
	}
	var out []Transfer
	for i, p := range pending {
		currency := currencyOf(p.Debit)
		x := Transfer{ID: fmt.Sprintf("%s/resolve/%d", key, i), Kind: TransferPost, PendingID: p.ID, Debit: p.Debit, Credit: p.Credit,
			Amount: min(p.Amount, used[currency]), Subject: p.Subject, Budgets: p.Budgets}
		if x.Amount == 0 {
			x.Kind = TransferVoid
		}
		used[currency] -= x.Amount
		if err := t.move(x, p.Amount); err != nil {
			return nil, err
		}
		out = append(out, x)
		over := int64(0)
		if i == last[currency] {
			over, used[currency] = used[currency], 0
		}
		if err := t.spend(p, x.Amount, over); err != nil {
			return nil, err
		}
		if over > 0 && wallet {
			more, err := t.overage(row, key, currency, over)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	}
	more, err := t.elsewhere(row, key, wallet, used)
	return append(out, more...), err
}

// elsewhere books what was used in currencies of which nothing was set aside.
func (t *tx) elsewhere(row Sandbox, key string, wallet bool, used map[string]int64) ([]Transfer, error) {
	maps.DeleteFunc(used, func(_ string, n int64) bool { return n == 0 })
	if !wallet {
		return t.unreserved(row, key, used)
	}
	var out []Transfer
	for _, currency := range slices.Sorted(maps.Keys(used)) {
		bs, err := t.budgets("WHERE (account = ? OR account = ?) AND currency = ?", StreamOf(row.Account), row.Account, currency)
		if err != nil {
			return nil, err
		}
		var counted Transfer
		for _, b := range bs {
			counted.Budgets = append(counted.Budgets, b.ID)
		}
		if err := t.spend(counted, 0, used[currency]); err != nil {
			return nil, err
		}
		more, err := t.overage(row, key+"/"+currency, currency, used[currency])
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

func currencyOf(account string) string { return account[strings.LastIndexByte(account, ':')+1:] }

// unreserved counts in the budgets what was used though nothing was set aside
// for it: its price was not known then, or another ledger began it.
func (t *tx) unreserved(row Sandbox, key string, used map[string]int64) ([]Transfer, error) {
	if len(used) == 0 {
		return nil, nil
	}
	org := StreamOf(row.Account)
	bs, err := t.budgets("WHERE (account = ? OR account = ?)", org, row.Account)
	if err != nil {
		return nil, err
	}
	var out []Transfer
	for _, b := range bs {
		amount := used[b.Currency]
		if amount == 0 {
			continue
		}
		i := slices.IndexFunc(out, func(x Transfer) bool { return x.Debit == accountID(org, AccountBYOK, b.Currency) })
		if i < 0 {
			memo, err := t.balance(org, AccountBYOK, b.Currency)
			if err != nil {
				return nil, err
			}
			i = len(out)
			out = append(out, Transfer{ID: key + "/unreserved/" + b.Currency, Kind: TransferDirect, Debit: memo.ID, Credit: memo.ID, Amount: amount, Subject: string(row.ID)})
		}
		out[i].Budgets = append(out[i].Budgets, b.ID)
	}
	for _, x := range out {
		if err := t.move(x, 0); err != nil {
			return nil, err
		}
		if err := t.spend(Transfer{Budgets: x.Budgets}, 0, x.Amount); err != nil {
			return nil, err
		}
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
	out, err := t.release(key, held)
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

// spend moves an amount of a budget from reserved to spent.
func (t *tx) spend(p Transfer, used, over int64) error {
	for _, id := range slices.Sorted(slices.Values(p.Budgets)) {
		bs, err := t.budgets("WHERE id = ?", id)
		if err != nil {
			return err
		}
		b, err := one(bs, nil, "budget", id)
		if err != nil {
			return err
		}
		b.Reserved -= p.Amount
		b.Spent += used + over
		b.Over += over
		if err := t.update("ledger.budget", "budgets", b.fields(), "id = ?", b.ID); err != nil {
			return err
		}
	}
	return nil
}

// overage books what was used above what had been set aside: from what is free
// in the wallet, the rest as receivable. No usage is lost, no wallet overdrawn.
func (t *tx) overage(row Sandbox, key, currency string, amount int64) ([]Transfer, error) {
	org := StreamOf(row.Account)
	wallet, err := t.balance(org, AccountWallet, currency)
	if err != nil {
		return nil, err
	}
	owed, err := t.balance(org, AccountReceivable, currency)
	if err != nil {
		return nil, err
	}
	revenue, err := t.balance(org, AccountRevenue, currency)
	if err != nil {
		return nil, err
	}
	paid := min(amount, max(0, wallet.Available()))
	var out []Transfer
	for _, part := range []struct {
		name, from string
		amount     int64
	}{{"overage", wallet.ID, paid}, {"receivable", owed.ID, amount - paid}} {
		if part.amount == 0 {
			continue
		}
		x := Transfer{ID: key + "/" + part.name, Kind: TransferDirect, Debit: part.from, Credit: revenue.ID, Amount: part.amount, Subject: string(row.ID)}
		if err := t.move(x, 0); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}
