package ledger

import (
	"errors"
	"math"
	"slices"
)

// Against is what reserving would answer for an account, given the balances
// and budgets of its org; free are reservations that will be released before,
// beside what others of the account are about to reserve. It is for those who
// only look: what is decided is decided by the transaction. soft are the soft
// budgets that would be passed.
func (r Reserve) Against(account string, balances []Balance, budgets []Budget, free []Transfer, beside []Reserve) (soft []Budget, err error) {
	org := StreamOf(account)
	beside = slices.DeleteFunc(slices.Clone(beside), func(o Reserve) bool { return o.Currency != r.Currency })
	wallet := Balance{ID: accountID(org, AccountWallet, r.Currency), Org: org}
	for _, b := range balances {
		if b.ID == wallet.ID {
			wallet = b
		}
	}
	for _, x := range free {
		if x.Debit == wallet.ID {
			wallet.DebitsPending -= x.Amount
		}
	}
	all, paid := besides(beside, wallet)
	wallet.DebitsPending += min(paid, math.MaxInt64-wallet.DebitsPending-wallet.DebitsPosted)
	var mine []Budget
	for _, b := range budgets {
		if b.Account != account && b.Account != org {
			continue
		}
		for _, x := range free {
			if slices.Contains(x.Budgets, b.ID) {
				b.Reserved -= x.Amount
			}
		}
		if b.Currency == r.Currency {
			b.Reserved += min(all, math.MaxInt64-b.Reserved-b.Spent)
		}
		mine = append(mine, b)
	}
	if r.Unknown {
		err = r.unpriced(mine)
	}
	if err != nil || r.Amount == 0 {
		return nil, err
	}
	mine = slices.DeleteFunc(mine, func(b Budget) bool { return b.Currency != r.Currency })
	for _, b := range mine {
		if !b.Hard && b.Available() < r.Amount {
			soft = append(soft, b)
		}
	}
	alone := r
	alone.Total = false // what is free is released before
	parts, _ := alone.portions(alone.payer("", free, wallet), free, wallet)
	err = r.refusal(parts, wallet, mine)
	var short *Insufficient
	if errors.As(err, &short) {
		if short.Beside = all; short.Limit == wallet.title() {
			short.Beside = paid
		}
	}
	return soft, err
}

// besides adds up what others set aside in all, and what the wallet pays of
// it. What does not fit is the largest number, which no limit has room for.
func besides(others []Reserve, wallet Balance) (all, paid int64) {
	for _, o := range others {
		all += min(o.Amount, math.MaxInt64-all)
		parts, _ := o.portions(o.payer("", nil, wallet), nil, wallet)
		for _, p := range parts {
			if p.payer == AccountWallet {
				paid += min(p.missing(), math.MaxInt64-paid)
			}
		}
	}
	return all, paid
}
