package bank

import "slices"

// Grant adds credit to the org's wallet and pays the org's debts from it first. key is the id of the
// transfer.
func (b *Books) Grant(key, currency string, amount int64) error {
	from, to := b.sure(AccountGrants, currency), b.sure(AccountWallet, currency)
	if err := b.move(Transfer{ID: key, Kind: TransferDirect, Debit: from, Credit: to, Amount: amount, Subject: b.subject}, 0); err != nil {
		return err
	}
	return b.payOwed(key+"/owed", currency)
}

// payOwed pays the org's debts from the free part of its wallet.
func (b *Books) payOwed(id, currency string) error {
	owed, wallet := b.balance(AccountReceivable, currency), b.balance(AccountWallet, currency)
	if owed.Owed() == 0 || wallet.Available() <= 0 {
		return nil
	}
	return b.move(Transfer{ID: id, Kind: TransferDirect, Debit: wallet.ID, Credit: owed.ID,
		Amount: min(owed.Owed(), wallet.Available()), Subject: b.subject}, 0)
}

// payFreed pays the org's debts from what transfers, from index since on, have freed in its wallets.
func (b *Books) payFreed(key string, since int) error {
	paid := map[string]bool{}
	for _, x := range slices.Clone(b.posted[since:]) {
		currency := currencyOf(x.Debit)
		if x.PendingID == "" || !ofWallet(x) || paid[currency] {
			continue
		}
		paid[currency] = true
		if err := b.payOwed(key+"/owed/"+currency, currency); err != nil {
			return err
		}
	}
	return nil
}
