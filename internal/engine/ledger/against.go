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
	beside = slices.DeleteFunc(slices.Clone(beside), func(o Reserve) bool { return o.Unknown || o.Currency != r.Currency })
	all := total(beside)
	var mine []Budget
	for _, b := range budgets {
		if b.Account != account && b.Account != StreamOf(account) {
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
		return nil, r.unpriced(mine)
	}
	if r.Amount == 0 {
		return nil, nil
	}
	wallet := Balance{ID: accountID(StreamOf(account), AccountWallet, r.Currency), Org: StreamOf(account)}
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
	paid := total(slices.DeleteFunc(beside, func(o Reserve) bool { return o.payer(nil, wallet) != AccountWallet }))
	wallet.DebitsPending += min(paid, math.MaxInt64-wallet.DebitsPending-wallet.DebitsPosted)
	mine = slices.DeleteFunc(mine, func(b Budget) bool { return b.Currency != r.Currency })
	for _, b := range mine {
		if !b.Hard && b.Available() < r.Amount {
			soft = append(soft, b)
		}
	}
	err = r.refusal(r.payer(nil, wallet), r.Amount, 0, wallet, mine)
	var short *Insufficient
	if errors.As(err, &short) {
		if short.Beside = all; short.Limit == wallet.title() {
			short.Beside = paid
		}
	}
	return soft, err
}

// total adds up amounts, which are not negative; what does not fit is the
// largest number, which no limit has room for.
func total(all []Reserve) (sum int64) {
	for _, r := range all {
		sum += min(r.Amount, math.MaxInt64-sum)
	}
	return sum
}
