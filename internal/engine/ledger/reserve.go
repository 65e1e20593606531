package ledger

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Reserve sets aside the worst case of a sandbox until its meter is closed:
// below every hard budget of its account and org, and from the wallet where
// the platform's credit pays. What was used is posted then, and the rest is free.
type Reserve struct {
	Currency string
	Amount   int64 // nano-units, rounded up
	// Wallet: platform credit pays; else only budgets are asked, and Memo is
	// where the amount is noted.
	Wallet bool
	// IfGranted: platform credit pays where the org was ever granted any in
	// the currency. What is set aside for the sandbox already decides first:
	// one life is paid in one way.
	IfGranted bool
	Memo      string // AccountBYOK (also "") or AccountInfra
	// Total: Amount is what has to be set aside in all. What is missing is
	// added; what is not needed any more is released, in whole reservations
	// and the latest first.
	Total bool
	// Unknown: nobody knows the price, and Amount and Currency mean nothing.
	// That is refused where any hard budget is set: *Unpriced. With Total, what
	// is set aside is released.
	Unknown bool
	// How the amount came about: Fixed and Hourly for the TTL. They tell which
	// ttl would fit.
	Fixed, Hourly int64
	TTL           time.Duration
}

// fits is the longest ttl, in whole minutes, whose worst case is available.
func (r Reserve) fits(available int64) time.Duration {
	if r.Hourly <= 0 || available <= r.Fixed {
		return 0
	}
	hi, lo := bits.Mul64(uint64(available-r.Fixed), uint64(time.Hour))
	if hi >= uint64(r.Hourly) {
		return r.TTL
	}
	ttl, _ := bits.Div64(hi, lo, uint64(r.Hourly))
	return min(time.Duration(min(ttl, uint64(r.TTL))), r.TTL).Truncate(time.Minute)
}

func (r Reserve) validate() error {
	if !r.Unknown && (r.Currency == "" && r.Amount != 0 || r.Amount < 0 || r.Fixed < 0 || r.Hourly < 0) {
		return failuref(extensions.KindInvalid, "what is to be set aside is negative or has no currency")
	}
	if !slices.Contains([]string{"", AccountBYOK, AccountInfra}, r.Memo) {
		return failuref(extensions.KindInvalid, "%q is no account of memos", r.Memo)
	}
	return nil
}

// payer is the kind of account the amount comes from, given what is set aside
// for the sandbox already and the org's wallet.
func (r Reserve) payer(held []Transfer, wallet Balance) string {
	memo := r.Memo
	if memo == "" {
		memo = AccountBYOK
	}
	if !r.IfGranted {
		if r.Wallet {
			return AccountWallet
		}
		return memo
	}
	for _, h := range held {
		if h.Debit == wallet.ID {
			return AccountWallet
		}
		if h.Debit == accountID(wallet.Org, memo, r.Currency) {
			return memo
		}
	}
	if wallet.CreditsPosted > 0 {
		return AccountWallet
	}
	return memo
}

// split tells what of the reservations of a sandbox still serves r, and what
// does not.
func (r Reserve) split(held []Transfer, from string) (keep, drop []Transfer, kept int64) {
	if !r.Total {
		return nil, nil, 0
	}
	for _, h := range held {
		if h.Debit == from && kept < r.Amount {
			keep, kept = append(keep, h), kept+h.Amount
		} else {
			drop = append(drop, h)
		}
	}
	return keep, drop, kept
}

func (r Reserve) unpriced(bs []Budget) error {
	for _, b := range bs {
		if b.Hard {
			return failure(extensions.KindExhausted, "", &Unpriced{Limit: b.title()}).
				WithRemedy("choose a place whose price is known, add a price book for it to the catalog, or have the budget made soft")
		}
	}
	return nil
}

// title of a wallet.
func (b Balance) title() string { return "wallet of " + b.Org }

func (b Budget) title() string { return fmt.Sprintf("budget %s of %s", b.Name, b.Account) }

// refusal is that of the limit with the least available, nil if all suffice.
func (r Reserve) refusal(payer string, need, held int64, wallet Balance, bs []Budget) error {
	limit, least := "", int64(math.MaxInt64)
	if payer == AccountWallet {
		limit, least = wallet.title(), wallet.Available()
	}
	for _, b := range bs {
		if b.Hard && b.Available() < least {
			limit, least = b.title(), b.Available()
		}
	}
	if need <= least {
		return nil
	}
	least = max(0, least)
	e := &Insufficient{Limit: limit, Need: need, Available: least, Held: held, Currency: r.Currency, TTL: r.TTL, Fits: r.fits(least + held)}
	return failure(extensions.KindExhausted, "", e).WithRemedy("shorten ttl, end what is not needed, or have the limit raised")
}

// reserve sets funds aside for a sandbox, or refuses with the limit that has
// the least.
func (t *tx) reserve(account, subject, key string, r *Reserve) ([]Transfer, error) {
	if r == nil || r.Amount == 0 && !r.Total && !r.Unknown {
		return nil, nil
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	org := StreamOf(account)
	held, err := t.held(subject)
	if err != nil {
		return nil, err
	}
	if r.Unknown {
		bs, err := t.budgets("WHERE (account = ? OR account = ?)", org, account)
		if err == nil {
			err = r.unpriced(bs)
		}
		if err != nil || !r.Total {
			return nil, err
		}
		return t.release(key, held)
	}
	wallet, err := t.lookUp(org, AccountWallet, r.Currency)
	if err != nil {
		return nil, err
	}
	payer := r.payer(held, wallet)
	_, drop, kept := r.split(held, accountID(org, payer, r.Currency))
	out, err := t.release(key, drop)
	if err != nil || kept >= r.Amount {
		return out, err
	}
	x, err := t.setAside(account, subject, key, *r, payer, kept)
	return append(out, x), err
}

// setAside reserves what is missing beside kept.
func (t *tx) setAside(account, subject, key string, r Reserve, payer string, kept int64) (Transfer, error) {
	org := StreamOf(account)
	x := Transfer{ID: key + "/reserve", Kind: TransferPending, Amount: r.Amount - kept, Subject: subject}
	bs, err := t.budgets("WHERE (account = ? OR account = ?) AND currency = ?", org, account, r.Currency)
	if err != nil {
		return x, err
	}
	wallet, err := t.lookUp(org, AccountWallet, r.Currency) // as it is after what was released
	if err != nil {
		return x, err
	}
	if err := r.refusal(payer, x.Amount, kept, wallet, bs); err != nil {
		return x, err
	}
	for _, b := range bs {
		if b.Reserved > math.MaxInt64-x.Amount {
			return x, failuref(extensions.KindInvalid, "the budget %s cannot hold so much", b.ID)
		}
		b.Reserved += x.Amount
		x.Budgets = append(x.Budgets, b.ID)
		if err := t.update("ledger.budget", "budgets", b.fields(), "id = ?", b.ID); err != nil {
			return x, err
		}
	}
	from, err := t.balance(org, payer, r.Currency)
	if err != nil {
		return x, err
	}
	x.Debit, x.Credit = from.ID, from.ID // a memo: both sides are the same account of no value
	if payer == AccountWallet {
		revenue, err := t.balance(org, AccountRevenue, r.Currency)
		if err != nil {
			return x, err
		}
		x.Credit = revenue.ID
	}
	return x, t.move(x, 0)
}

// release voids reservations that are not needed.
func (t *tx) release(key string, held []Transfer) ([]Transfer, error) {
	var out []Transfer
	for i, p := range held {
		x := Transfer{ID: fmt.Sprintf("%s/release/%d", key, i), Kind: TransferVoid, PendingID: p.ID, Debit: p.Debit, Credit: p.Credit,
			Subject: p.Subject, Budgets: p.Budgets}
		if err := t.move(x, p.Amount); err != nil {
			return nil, err
		}
		if err := t.spend(p, 0, 0); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}
