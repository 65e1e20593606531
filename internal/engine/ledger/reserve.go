package ledger

import (
	"fmt"
	"math"
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
	// the currency. Who pays for the life already decides first: one life is
	// paid in one way.
	IfGranted bool
	// Anew: nothing of the life has run, so that its payer so far, maybe of
	// another place, decides nothing.
	Anew bool
	Memo string // AccountBYOK (also "") or AccountInfra
	// Own is what of it somebody else is paid although platform credit pays the
	// rest: with the user's own key and a fee, what the vendor charges. Budgets
	// count all of it, the wallet the rest, and Memo is where Own is noted.
	Own Share
	// Total: Amount is what has to be set aside in all. What is missing is
	// added; what is not needed any more is released, the latest first, and
	// what is needed still of the last of them is set aside again.
	Total bool
	// Less, with Total: what is not needed is released, and nothing is added or
	// decided, so that no limit refuses.
	Less bool
	// Unknown: nobody knows all of the price, and Amount is what is known of
	// it, which may be nothing. That is refused where any hard budget is set:
	// *Unpriced.
	Unknown bool
	// How the amount came about: Fixed and Hourly for the TTL. They tell which
	// ttl would fit.
	Fixed, Hourly int64
	TTL           time.Duration
}

// Share is a part of what is to be set aside, in nano-units, and how it came
// about.
type Share struct{ Amount, Fixed, Hourly int64 }

func (s Share) within(all Share) bool {
	return s.Amount >= 0 && s.Fixed >= 0 && s.Hourly >= 0 && s.Amount <= all.Amount && s.Fixed <= all.Fixed && s.Hourly <= all.Hourly
}

func (s Share) without(part Share) Share {
	return Share{s.Amount - part.Amount, s.Fixed - part.Fixed, s.Hourly - part.Hourly}
}

func (r Reserve) whole() Share { return Share{r.Amount, r.Fixed, r.Hourly} }

func (r Reserve) validate() error {
	if whole := r.whole(); r.Currency == "" && r.Amount != 0 || !whole.within(whole) || !r.Own.within(whole) {
		return failuref(extensions.KindInvalid, "what is to be set aside is negative, less than a part of it, or has no currency")
	}
	if !slices.Contains([]string{"", AccountBYOK, AccountInfra}, r.Memo) {
		return failuref(extensions.KindInvalid, "%q is no account of memos", r.Memo)
	}
	return nil
}

// memo is the kind of account that what no wallet pays is noted in.
func (r Reserve) memo() string {
	if r.Memo == "" {
		return AccountBYOK
	}
	return r.Memo
}

// payer is the kind of account the amount comes from, given who pays for the
// life so far, what is set aside for the sandbox already and the org's wallet.
func (r Reserve) payer(life string, held []Transfer, wallet Balance) string {
	if r.Currency == "" && life != "" && !r.Anew {
		return life // of a price that nobody knows nothing is decided
	}
	if !r.IfGranted {
		if r.Wallet {
			return AccountWallet
		}
		return r.memo()
	}
	if life != "" && !r.Anew {
		return life
	}
	for _, h := range held {
		if r.Anew {
			break
		}
		if h.Debit == wallet.ID {
			return AccountWallet
		}
		if h.Debit == accountID(wallet.Org, r.memo(), r.Currency) {
			return r.memo()
		}
	}
	if wallet.CreditsPosted > 0 {
		return AccountWallet
	}
	return r.memo()
}

// portion is what one account has to set aside of a Reserve.
type portion struct {
	payer string // kind of account
	id    string // of the account
	Share
	kept int64 // set aside already
}

func (p portion) missing() int64 { return max(0, p.Amount-p.kept) }

// surplus is a reservation of which less is needed than it holds.
type surplus struct {
	Transfer
	keep int64 // what is needed still
}

// all of each is released.
func all(held []Transfer) (out []surplus) {
	for _, h := range held {
		out = append(out, surplus{Transfer: h})
	}
	return out
}

// portions are those of all accounts, the wallet's first; none is of nothing.
// held is what is set aside already, of which rest serves none of them.
func (r Reserve) portions(payer string, held []Transfer, wallet Balance) (parts []portion, rest []surplus) {
	if payer == AccountWallet {
		parts = []portion{{payer: payer, Share: r.whole().without(r.Own)}, {payer: r.memo(), Share: r.Own}}
	} else {
		parts = []portion{{payer: payer, Share: r.whole()}}
	}
	parts = slices.DeleteFunc(parts, func(p portion) bool { return p.Amount == 0 })
	for i := range parts {
		parts[i].id = accountID(wallet.Org, parts[i].payer, r.Currency)
	}
	if !r.Total {
		return parts, nil
	}
	for _, h := range held {
		needed := int64(0)
		if i := slices.IndexFunc(parts, func(p portion) bool { return p.id == h.Debit }); i >= 0 {
			needed = min(h.Amount, parts[i].missing())
			parts[i].kept += needed
		}
		if needed < h.Amount {
			rest = append(rest, surplus{h, needed})
		}
	}
	return parts, rest
}

// reserve sets funds aside for a sandbox and decides who pays for its life, or
// refuses with the limit that allows the least.
func (t *tx) reserve(row *Sandbox, key string, r *Reserve) ([]Transfer, error) {
	if r == nil {
		return nil, nil
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	org := StreamOf(row.Account)
	if r.Unknown && !r.Less {
		bs, err := t.budgets("WHERE (account = ? OR account = ?)", org, row.Account)
		if err == nil {
			err = r.unpriced(bs)
		}
		if err != nil {
			return nil, err
		}
	}
	held, err := t.held(string(row.ID))
	if err != nil {
		return nil, err
	}
	wallet, err := t.lookUp(org, AccountWallet, r.Currency)
	if err != nil {
		return nil, err
	}
	payer := r.payer(row.Payer, held, wallet)
	parts, rest := r.portions(payer, held, wallet)
	out, err := t.release(row.Account, key, rest)
	if err != nil || r.Less {
		return out, err
	}
	row.Payer = payer
	more, err := t.setAside(row.Account, string(row.ID), key, *r, parts)
	return append(out, more...), err
}

// setAside reserves what is missing of the portions.
func (t *tx) setAside(account, subject, key string, r Reserve, parts []portion) ([]Transfer, error) {
	org, sum := StreamOf(account), int64(0)
	for _, p := range parts {
		sum += p.missing()
	}
	if sum == 0 {
		return nil, nil
	}
	bs, err := t.budgetsOf(account, r.Currency)
	if err != nil {
		return nil, err
	}
	wallet, err := t.lookUp(org, AccountWallet, r.Currency) // as it is after what was released
	if err != nil {
		return nil, err
	}
	if err := r.refusal(parts, wallet, bs); err != nil {
		return nil, err
	}
	var ids []string
	for _, b := range bs {
		if b.Reserved > math.MaxInt64-sum {
			return nil, failuref(extensions.KindInvalid, "the budget %s cannot hold so much", b.ID)
		}
		b.Reserved += sum
		ids = append(ids, b.ID)
		if err := t.update("ledger.budget", "budgets", b.fields(), "id = ?", b.ID); err != nil {
			return nil, err
		}
	}
	var out []Transfer
	for _, p := range parts {
		if p.missing() == 0 {
			continue
		}
		x := Transfer{ID: key + "/reserve", Kind: TransferPending, Amount: p.missing(), Subject: subject, Budgets: ids}
		if len(out) > 0 {
			x.ID += "/own"
		}
		if x.Debit, x.Credit, err = t.sides(org, p.payer, r.Currency); err != nil {
			return nil, err
		}
		if err := t.move(x, 0); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// sides are the accounts that what a payer pays goes from and to, made where
// they are missing. Those of a memo are one account of no value.
func (t *tx) sides(org, payer, currency string) (debit, credit string, err error) {
	from, err := t.balance(org, payer, currency)
	if err != nil || payer != AccountWallet && payer != AccountReceivable {
		return from.ID, from.ID, err
	}
	to, err := t.balance(org, AccountRevenue, currency)
	return from.ID, to.ID, err
}

// budgetsOf are those that count for an account in a currency.
func (t *tx) budgetsOf(account, currency string) ([]Budget, error) {
	return t.budgets("WHERE (account = ? OR account = ?) AND currency = ?", StreamOf(account), account, currency)
}

// release voids reservations of which less is needed, and sets aside again what
// is: below the same budgets, which held more of it before, so nothing refuses.
func (t *tx) release(account, key string, rest []surplus) ([]Transfer, error) {
	var out []Transfer
	for i, p := range rest {
		x := Transfer{ID: fmt.Sprintf("%s/release/%d", key, i), Kind: TransferVoid, PendingID: p.ID, Debit: p.Debit, Credit: p.Credit,
			Subject: p.Subject, Budgets: p.Budgets}
		if err := t.move(x, p.Amount); err != nil {
			return nil, err
		}
		out = append(out, x)
		if p.keep > 0 {
			x.ID, x.Kind, x.PendingID, x.Amount = fmt.Sprintf("%s/keep/%d", key, i), TransferPending, "", p.keep
			x.at = p.at // so much of it is held since then
			if err := t.move(x, 0); err != nil {
				return nil, err
			}
			out = append(out, x)
		}
		freed := p.Transfer
		freed.Amount -= p.keep
		if err := t.spend(account, freed, 0, 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}
