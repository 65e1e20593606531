package bank

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Charges returns the charges of a closed meter from its rates and the backend's measurements, if any. If
// platform credit does not pay for the life, they are memos, whatever its prices say.
func Charges(m Meter, usage *extensions.Usage, payer string, held []Transfer) ([]Charge, error) {
	charges, err := Price(m, usage)
	if err != nil {
		return nil, err
	}
	return m.Paid(charges, payer, held), nil
}

// Paid assigns the charges that Price made to who pays, according to the payer of the life and its
// reservations. What no wallet pays becomes a memo of the kind that holds a reservation, else of the
// payer's kind; if the payer is undecided and a vendor bills, of the user's own key.
func (m Meter) Paid(charges []Charge, payer string, held []Transfer) []Charge {
	out := slices.Clone(charges)
	for i := range out {
		c := &out[i]
		kind := pays(payer, held, c.Currency, c.Memo)
		if kind == AccountWallet {
			continue
		}
		_, place, _ := strings.Cut(c.Memo, ":")
		c.Memo = kind + ":" + cmp.Or(place, m.For.Extension)
	}
	return out
}

// pays returns the kind of account that a charge comes from: the wallet if platform credit pays for the
// life and the charge is no memo; otherwise the memo with a reservation, the payer's, or the charge's own.
// If the payer is undecided, the reservations decide.
func pays(payer string, held []Transfer, currency, memo string) string {
	credit := payer == AccountWallet || payer == "" && slices.ContainsFunc(held, ofWallet)
	if credit && memo == "" {
		return AccountWallet
	}
	if i := memoIn(held, currency); i >= 0 {
		return kindOf(held[i].Debit)
	}
	if payer != "" && payer != AccountWallet {
		return payer
	}
	return memoKind(memo)
}

func ofWallet(x Transfer) bool { return kindOf(x.Debit) == AccountWallet }

// memoIn returns the index of the first reservation in the currency outside a wallet; -1 = none.
func memoIn(held []Transfer, currency string) int {
	return slices.IndexFunc(held, func(x Transfer) bool { return !ofWallet(x) && currencyOf(x.Debit) == currency })
}

// memoKind returns the kind of account that a memo belongs to; "" belongs to the user's own key, the only
// other party to be billed.
func memoKind(memo string) string {
	if memo == "" || strings.HasPrefix(memo, AccountBYOK+":") {
		return AccountBYOK
	}
	return AccountInfra
}
