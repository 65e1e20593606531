package ledger

import (
	"errors"
	"math"
	"slices"
)

// Beside is what another one is about to reserve, and for which account.
type Beside struct {
	Account string
	Reserve
}

// Against is what reserving would answer for an account, given the balances
// and budgets of its org; free are reservations that will be released before,
// beside what others are about to reserve: those of the same org count against
// its wallet and its budgets, and against a workspace's budgets those of the
// workspace. It is for those who only look: what is decided is decided by the transaction. soft are the soft
// budgets that would be passed.
func (r Reserve) Against(account string, balances []Balance, budgets []Budget, free []Transfer, beside []Beside) (soft []Budget, err error) {
	org := StreamOf(account)
	beside = slices.DeleteFunc(slices.Clone(beside), func(o Beside) bool { return o.Currency != r.Currency || StreamOf(o.Account) != org })
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
	paid := paidBy(wallet, beside)
	wallet.DebitsPending += min(paid, math.MaxInt64-wallet.DebitsPending-wallet.DebitsPosted)
	besides := map[string]int64{wallet.title(): paid}
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
			others := b.counts(beside)
			b.Reserved += min(others, math.MaxInt64-b.Reserved-b.Spent)
			besides[b.title()] = others
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
		short.Beside = besides[short.Limit]
	}
	return soft, err
}

// counts adds up what others set aside of the budget. What does not fit is the
// largest number, which no limit has room for.
func (b Budget) counts(others []Beside) (sum int64) {
	for _, o := range others {
		if b.Account == o.Account || b.Account == StreamOf(o.Account) {
			sum += min(o.Amount, math.MaxInt64-sum)
		}
	}
	return sum
}

// paidBy adds up what others set aside of the wallet, as counts does.
func paidBy(wallet Balance, others []Beside) (sum int64) {
	for _, o := range others {
		parts, _ := o.portions(o.payer("", nil, wallet), nil, wallet)
		for _, p := range parts {
			if p.payer == AccountWallet {
				sum += min(p.missing(), math.MaxInt64-sum)
			}
		}
	}
	return sum
}
