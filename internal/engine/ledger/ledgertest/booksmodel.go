package ledgertest

import (
	"maps"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// plainBooks is plain arithmetic for accounts and budgets: the rules of the ledger's design, written a second time and
// without a database.
type plainBooks struct {
	accounts map[string]*ledger.Balance
	budgets  map[string]*ledger.Budget
	held     map[extensions.ID][]part
	payers   map[extensions.ID]string // kinds of accounts, of unsettled lives
}

// part is one reservation with a rest.
type part struct {
	org, payer, currency string
	amount               int64
	budgets              []string
}

func newPlainBooks() *plainBooks {
	return &plainBooks{map[string]*ledger.Balance{}, map[string]*ledger.Budget{}, map[extensions.ID][]part{}, map[extensions.ID]string{}}
}

func (p *plainBooks) account(org, kind, currency string) *ledger.Balance {
	id := org + ":" + kind + ":" + currency
	if p.accounts[id] == nil {
		p.accounts[id] = &ledger.Balance{ID: id, Org: org, Kind: kind, Currency: currency}
	}
	return p.accounts[id]
}

// begins returns the beginning of the period at now; zero = forever.
func begins(period string, now time.Time) time.Time {
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch period {
	case "day":
		return day
	case "week":
		for day.Weekday() != time.Monday {
			day = day.AddDate(0, 0, -1)
		}
		return day
	case "month":
		return day.AddDate(0, 0, 1-day.Day())
	}
	return time.Time{}
}

// asOf drops the spent amount of a period that has ended.
func asOf(b ledger.Budget, now time.Time) ledger.Budget {
	if at := begins(b.Period, now); at.After(b.Since) {
		b.Since, b.Spent, b.Over = at, 0, 0
	}
	return b
}

func (p *plainBooks) put(b ledger.Budget, now time.Time) {
	b.ID = b.Account + ":" + b.Name + ":" + b.Currency
	b.Since = begins(b.Period, now)
	if old := p.budgets[b.ID]; old != nil {
		was := asOf(*old, now)
		b.Reserved, b.Spent, b.Over = was.Reserved, was.Spent, was.Over
		if b.Period == was.Period {
			b.Since = was.Since
		}
	}
	p.budgets[b.ID] = &b
}

// over lists the budgets of the account and its org in the currency.
func (p *plainBooks) over(account, currency string) (ids []string) {
	for id, b := range p.budgets {
		if b.Currency == currency && (b.Account == account || b.Account == ledger.StreamOf(account)) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// limit bounds a reservation: the need that counts there, and the room left.
type limit struct{ need, room int64 }

// limits lists the wallet's limit, which own does not count against, and those of all hard budgets.
func (p *plainBooks) limits(account, payer, currency string, need, own int64, now time.Time) (out []limit) {
	if payer == ledger.AccountWallet && need > own {
		out = append(out, limit{need - own, p.account(ledger.StreamOf(account), payer, currency).Available()})
	}
	for _, id := range p.over(account, currency) {
		if b := asOf(*p.budgets[id], now); b.Hard {
			out = append(out, limit{need, b.Limit - b.Reserved - b.Spent})
		}
	}
	return out
}

func (p *plainBooks) grant(org, currency string, n int64) {
	p.account(org, bank.AccountGrants, currency).DebitsPosted += n
	p.account(org, ledger.AccountWallet, currency).CreditsPosted += n
	p.payOwed(org, currency)
}

// payOwed pays debts from what is free.
func (p *plainBooks) payOwed(org, currency string) {
	wallet, owed := p.account(org, ledger.AccountWallet, currency), p.account(org, ledger.AccountReceivable, currency)
	n := min(max(0, wallet.Available()), owed.DebitsPosted-owed.CreditsPosted)
	wallet.DebitsPosted += n
	owed.CreditsPosted += n
}

// sides returns the accounts that a payer's money leaves and enters.
func (p *plainBooks) sides(org, payer, currency string) (from, to *ledger.Balance) {
	from = p.account(org, payer, currency)
	if payer == ledger.AccountWallet {
		return from, p.account(org, bank.AccountRevenue, currency)
	}
	return from, from
}

// reserve holds n, of which own is not the wallet's. It decides the payer even if n is 0.
func (p *plainBooks) reserve(id extensions.ID, account, payer, currency string, n, own int64, now time.Time) {
	p.payers[id] = payer
	for _, share := range []struct {
		payer  string
		amount int64
	}{{payer, n - own}, {ledger.AccountBYOK, own}} {
		if share.amount == 0 {
			continue
		}
		x := part{ledger.StreamOf(account), share.payer, currency, share.amount, p.over(account, currency)}
		from, to := p.sides(x.org, x.payer, currency)
		from.DebitsPending += x.amount
		to.CreditsPending += x.amount
		for _, b := range x.budgets {
			*p.budgets[b] = asOf(*p.budgets[b], now)
			p.budgets[b].Reserved += x.amount
		}
		p.held[id] = append(p.held[id], x)
	}
}

// source is the payer and currency of a charge.
type source struct{ payer, currency string }

func (x part) source() source { return source{x.payer, x.currency} }

// payerOf returns the payer of a charge: the wallet if it pays for the life and the platform bills the charge. All else
// is a memo: of the held kind, else of the life's payer.
func payerOf(payer string, parts []part, c ledger.Charge) source {
	if payer == ledger.AccountWallet && c.Memo == "" {
		return source{payer, c.Currency}
	}
	for _, x := range parts {
		if x.payer != ledger.AccountWallet && x.currency == c.Currency {
			return x.source()
		}
	}
	if payer != "" && payer != ledger.AccountWallet {
		return source{payer, c.Currency}
	}
	return source{ledger.AccountBYOK, c.Currency}
}

// shorten releases all but the needed amount of each source, the latest reservation first.
func (p *plainBooks) shorten(id extensions.ID, needed map[source]int64) {
	var left, freed []part
	for _, x := range p.held[id] {
		n := min(x.amount, needed[x.source()])
		needed[x.source()] -= n
		from, to := p.sides(x.org, x.payer, x.currency)
		from.DebitsPending -= x.amount - n
		to.CreditsPending -= x.amount - n
		for _, b := range x.budgets {
			p.budgets[b].Reserved -= x.amount - n
		}
		if n < x.amount && x.payer == ledger.AccountWallet {
			freed = append(freed, x)
		}
		if x.amount = n; n > 0 {
			left = append(left, x)
		}
	}
	p.held[id] = left
	for _, x := range freed {
		p.payOwed(x.org, x.currency)
	}
}

// settle resolves all reservations of a sandbox with its usage.
func (p *plainBooks) settle(id extensions.ID, account string, charges []ledger.Charge, now time.Time) {
	parts, payer := p.held[id], p.payers[id]
	delete(p.held, id)
	delete(p.payers, id)
	used := map[source]int64{}
	for _, c := range charges {
		used[payerOf(payer, parts, c)] += c.Amount
	}
	for _, x := range parts {
		n := min(x.amount, used[x.source()])
		used[x.source()] -= n
		from, to := p.sides(x.org, x.payer, x.currency)
		from.DebitsPending -= x.amount
		to.CreditsPending -= x.amount
		from.DebitsPosted += n
		to.CreditsPosted += n
		for _, b := range x.budgets {
			p.budgets[b].Reserved -= x.amount
		}
		p.spend(account, x.currency, n, 0, now)
	}
	for from, n := range used {
		p.overrun(account, from, n, now)
	}
	for _, x := range parts {
		if x.payer == ledger.AccountWallet {
			p.payOwed(x.org, x.currency)
		}
	}
}

// spend counts in all existing budgets.
func (p *plainBooks) spend(account, currency string, n, over int64, now time.Time) {
	for _, id := range p.over(account, currency) {
		*p.budgets[id] = asOf(*p.budgets[id], now)
		p.budgets[id].Spent += n + over
		p.budgets[id].Over += over
	}
}

// overrun books usage beyond the reservations. None of it may be lost.
func (p *plainBooks) overrun(account string, of source, n int64, now time.Time) {
	p.spend(account, of.currency, 0, n, now)
	org := ledger.StreamOf(account)
	from, to := p.sides(org, of.payer, of.currency)
	paid := n
	if of.payer == ledger.AccountWallet {
		paid = min(n, max(0, from.Available()))
		p.account(org, ledger.AccountReceivable, of.currency).DebitsPosted += n - paid
	}
	from.DebitsPosted += paid
	to.CreditsPosted += n
}

// expose releases all reservations and records the exposure.
func (p *plainBooks) expose(id extensions.ID, account string, now time.Time) {
	parts := p.held[id]
	p.settle(id, account, nil, now)
	for _, x := range parts {
		memo := p.account(x.org, bank.AccountExposure, x.currency)
		memo.DebitsPosted += x.amount
		memo.CreditsPosted += x.amount
	}
}

// copied returns a copy, to try what may be refused.
func (p *plainBooks) copied() *plainBooks {
	out := newPlainBooks()
	for id, b := range p.accounts {
		c := *b
		out.accounts[id] = &c
	}
	for id, b := range p.budgets {
		c := *b
		out.budgets[id] = &c
	}
	for id, parts := range p.held {
		out.held[id] = slices.Clone(parts)
	}
	maps.Copy(out.payers, p.payers)
	return out
}
