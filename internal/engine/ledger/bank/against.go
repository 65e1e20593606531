package bank

import (
	"errors"
	"math"
	"slices"
)

// Beside is what another planned sandbox is about to reserve, and for which account.
type Beside struct {
	Account string
	Reserve
}

// Against returns what reserving would answer for an account, given the balances and budgets of its org.
// free are reservations that will be released first; others are about to be made: those of the same org
// count against its wallet and budgets, those of the same workspace against the workspace's budgets. It
// only predicts; the transaction decides. soft lists the soft budgets that would be exceeded.
func (r Reserve) Against(account string, balances []Balance, budgets []Budget, free []Transfer,
	beside []Beside) (soft []Budget, err error) {
	org := OrgOf(account)
	beside = slices.DeleteFunc(slices.Clone(beside), func(o Beside) bool { return o.Currency != r.Currency || OrgOf(o.Account) != org })
	wallet := Balance{ID: AccountID(org, AccountWallet, r.Currency), Org: org}
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
	alone.Total = false // what is free is released first
	parts, _ := alone.portions(alone.payer("", free, wallet), free, wallet)
	err = r.refusal(parts, wallet, mine)
	var short *Insufficient
	if errors.As(err, &short) {
		short.Beside = besides[short.Limit]
	}
	return soft, err
}

// counts sums what others reserve from the budget, saturating at the largest number, which no limit has
// room for.
func (b Budget) counts(others []Beside) (sum int64) {
	for _, o := range others {
		if b.Account == o.Account || b.Account == OrgOf(o.Account) {
			sum += min(o.Amount, math.MaxInt64-sum)
		}
	}
	return sum
}

// paidBy sums what others reserve from the wallet, as counts does.
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
