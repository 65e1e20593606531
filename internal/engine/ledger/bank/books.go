package bank

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Books are the money that one change may move: an org's accounts, the budgets that apply to one of its
// accounts, and what is held for one sandbox. Posted returns what the change did.
type Books struct {
	account string // "org/workspace", or an org
	subject string // subject of the transfers: a sandbox's id
	now     time.Time

	accounts map[string]*entry
	budgets  []*counted
	held     []Transfer
	posted   []Transfer
}

// entry is an account and whether it changed.
type entry struct {
	Balance
	made, changed bool
}

// counted is a budget and whether its count changed.
type counted struct {
	Budget
	changed bool
}

// Stored are the rows that make up Books: all accounts of the org, the budgets of the account and of the
// org, and the sandbox's unresolved reservations, oldest first.
type Stored struct {
	Balances []Balance
	Budgets  []Budget
	Held     []Transfer
}

// Open opens the books for a change of subject, which belongs to account, at now.
func Open(account, subject string, now time.Time, s Stored) *Books {
	b := &Books{account: account, subject: subject, now: now, accounts: map[string]*entry{}, held: slices.Clone(s.Held)}
	for _, a := range s.Balances {
		b.accounts[a.ID] = &entry{Balance: a}
	}
	for _, x := range s.Budgets {
		b.budgets = append(b.budgets, &counted{Budget: x.At(now)})
	}
	return b
}

// Held returns what is set aside for the subject, oldest first.
func (b *Books) Held() []Transfer { return b.held }

// Posted is what a change did, to be written in this order: new accounts; changed accounts and budgets,
// each once, by id; transfers in the order in which they were made.
type Posted struct {
	Made, Changed []Balance
	Budgets       []Budget
	Transfers     []Transfer
}

// Posted returns what was done since the books were opened.
func (b *Books) Posted() Posted {
	p := Posted{Transfers: b.posted}
	for _, e := range b.accounts {
		switch {
		case e.made:
			p.Made = append(p.Made, e.Balance)
		case e.changed:
			p.Changed = append(p.Changed, e.Balance)
		}
	}
	for _, list := range [][]Balance{p.Made, p.Changed} {
		slices.SortFunc(list, func(x, y Balance) int { return cmp.Compare(x.ID, y.ID) })
	}
	for _, c := range b.budgets {
		if c.changed {
			p.Budgets = append(p.Budgets, c.Budget)
		}
	}
	return p
}

func (b *Books) org() string { return OrgOf(b.account) }

// balance returns the org's account as it is now, empty if it was never used.
func (b *Books) balance(kind, currency string) Balance {
	id := AccountID(b.org(), kind, currency)
	if e := b.accounts[id]; e != nil {
		return e.Balance
	}
	return Balance{ID: id, Org: b.org(), Kind: kind, Currency: currency}
}

// sure returns the id of an account and creates the account if it is missing.
func (b *Books) sure(kind, currency string) string {
	a := b.balance(kind, currency)
	if b.accounts[a.ID] == nil {
		b.accounts[a.ID] = &entry{Balance: a, made: true}
	}
	return a.ID
}

// sides returns the accounts that a payer's payment moves between. A memo has the same account on both
// sides.
func (b *Books) sides(payer, currency string) (debit, credit string) {
	from := b.sure(payer, currency)
	if payer != AccountWallet && payer != AccountReceivable {
		return from, from
	}
	return from, b.sure(AccountRevenue, currency)
}

// move posts a transfer to both its accounts. released is what a resolution removes from the pending
// amount.
func (b *Books) move(x Transfer, released int64) error {
	if x.At.IsZero() {
		x.At = b.now
	}
	for _, side := range []struct {
		id   string
		into func(*entry) (pending, posted *int64)
	}{
		{x.Debit, func(e *entry) (*int64, *int64) { return &e.DebitsPending, &e.DebitsPosted }},
		{x.Credit, func(e *entry) (*int64, *int64) { return &e.CreditsPending, &e.CreditsPosted }},
	} {
		e := b.accounts[side.id]
		if e == nil {
			return fault.New(extensions.KindNotFound, "", fmt.Errorf("the ledger has no account %q", side.id))
		}
		pending, posted := side.into(e)
		to := posted
		if x.Kind == TransferPending {
			to = pending
		}
		*pending -= released
		if x.Amount > math.MaxInt64-*posted-*pending { // so that a pending amount can always be posted
			return fault.Errorf(extensions.KindInvalid, "the account %s cannot hold so much", e.ID)
		}
		*to += x.Amount
		e.changed = true
	}
	b.posted = append(b.posted, x)
	return nil
}

// of returns the budgets in a currency.
func (b *Books) of(currency string) (out []*counted) {
	for _, c := range b.budgets {
		if c.Currency == currency {
			out = append(out, c)
		}
	}
	return out
}

func limits(list []*counted) []Budget {
	out := make([]Budget, len(list))
	for i, c := range list {
		out[i] = c.Budget
	}
	return out
}

// spend counts in the budgets what was used of a reservation, and what exceeded it. It counts in all
// budgets, since one may have been added after the reservation, and releases the reservation where it was
// held.
func (b *Books) spend(p Transfer, used, over int64) {
	for _, c := range b.of(currencyOf(p.Debit)) {
		holds := slices.Contains(p.Budgets, c.ID)
		if !holds && used == 0 && over == 0 {
			continue
		}
		if holds {
			c.Reserved -= p.Amount
		}
		c.Spent = add(c.Spent, add(used, over))
		c.Over = add(c.Over, over)
		c.changed = true
	}
}
