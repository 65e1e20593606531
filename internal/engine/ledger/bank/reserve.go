package bank

import (
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Reserve sets aside the worst case of a sandbox until its meter closes: from every hard budget of its
// account and org, and from the wallet if platform credit pays. Closing posts what was used and frees the
// rest.
type Reserve struct {
	Currency string
	Amount   int64 // nano-units, rounded up
	// Wallet says that platform credit pays. Otherwise only budgets apply, and Memo names where the amount
	// is recorded.
	Wallet bool
	// IfGranted says that platform credit pays if the org was ever granted any in the currency. An earlier
	// decision on the payer wins: one life is paid in one way.
	IfGranted bool
	// Anew says that nothing of the life has run, so its earlier payer, perhaps for another place, does not
	// bind.
	Anew bool
	Memo string // AccountBYOK (also "") or AccountInfra
	// Own is the part paid to somebody else while platform credit pays the rest: with the user's own key
	// and a fee, what the vendor charges. Budgets count the full amount, the wallet the rest; Memo names
	// where Own is recorded.
	Own Share
	// Total says that Amount is the full reservation. What is missing is added; what is no longer needed is
	// released, latest first, and the part of the last one that is still needed is set aside again.
	Total bool
	// Less, with Total, only releases: it adds and decides nothing, so no limit refuses.
	Less bool
	// Unknown says that part of the price is unknown; Amount is the known part and may be 0. Any hard
	// budget refuses it with *Unpriced.
	Unknown bool
	// How the amount is made up: Fixed, and Hourly for the TTL. They determine which ttl would fit.
	Fixed, Hourly int64
	TTL           time.Duration
}

// Share is a part of a reservation, in nano-units, and how it is made up.
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
		return fault.Errorf(extensions.KindInvalid, "the amount to set aside is negative, less than its parts, or has no currency")
	}
	if !slices.Contains([]string{"", AccountBYOK, AccountInfra}, r.Memo) {
		return fault.Errorf(extensions.KindInvalid, "%q is not a memo account", r.Memo)
	}
	return nil
}

// memo returns the kind of account that records what no wallet pays.
func (r Reserve) memo() string {
	if r.Memo == "" {
		return AccountBYOK
	}
	return r.Memo
}

// payer returns the kind of account that pays, given the payer of the life so far, what is already held
// for the sandbox and the org's wallet.
func (r Reserve) payer(life string, held []Transfer, wallet Balance) string {
	if r.Currency == "" && life != "" && !r.Anew {
		return life // an unknown price decides nothing
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
		if h.Debit == AccountID(wallet.Org, r.memo(), r.Currency) {
			return r.memo()
		}
	}
	if wallet.CreditsPosted > 0 {
		return AccountWallet
	}
	return r.memo()
}

// portion is what one account must set aside of a Reserve.
type portion struct {
	payer string // kind of account
	id    string // of the account
	Share
	kept int64 // already set aside
}

func (p portion) missing() int64 { return max(0, p.Amount-p.kept) }

// surplus is a reservation that holds more than is needed.
type surplus struct {
	Transfer
	keep int64 // still needed
}

// all releases every reservation in full.
func all(held []Transfer) (out []surplus) {
	for _, h := range held {
		out = append(out, surplus{Transfer: h})
	}
	return out
}

// portions returns the portions of all accounts, the wallet's first, without empty ones. held is what is
// already set aside; rest is the part of it that serves no portion.
func (r Reserve) portions(payer string, held []Transfer, wallet Balance) (parts []portion, rest []surplus) {
	if payer == AccountWallet {
		parts = []portion{{payer: payer, Share: r.whole().without(r.Own)}, {payer: r.memo(), Share: r.Own}}
	} else {
		parts = []portion{{payer: payer, Share: r.whole()}}
	}
	parts = slices.DeleteFunc(parts, func(p portion) bool { return p.Amount == 0 })
	for i := range parts {
		parts[i].id = AccountID(wallet.Org, parts[i].payer, r.Currency)
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
