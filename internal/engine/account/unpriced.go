package account

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// unpriced counts the lives that an org's amounts lack: those with a charge of unknown price.
type unpriced struct {
	l       *ledger.Ledger
	running []ledger.UsageRow // by account
}

func (a *Account) unpriced(ctx context.Context, l *ledger.Ledger, org string) (unpriced, error) {
	f := ledger.UsageFilter{Account: org}
	running, _, err := accrual{only: hasUnknown}.add(ctx, l, f, []ledger.Dimension{ledger.ByAccount}, a.books.Now())
	return unpriced{l, running}, err
}

func hasUnknown(charges []ledger.Charge) bool {
	for _, c := range charges {
		if !c.Known() {
			return true
		}
	}
	return false
}

// lives counts those of an account that run, or ended after since, in the currency or in an unknown one;
// of selects rows by who pays.
func (u unpriced) lives(ctx context.Context, account, currency string, since time.Time,
	of func(ledger.UsageRow) bool) (n int64, err error) {
	count := func(r ledger.UsageRow) {
		if (r.Currency == currency || r.Currency == "") && of(r) {
			n += r.Unpriced
		}
	}
	ended, err := u.l.Usage(ctx, ledger.UsageFilter{Account: account, From: since})
	for _, r := range ended {
		count(r)
	}
	for _, r := range u.running {
		if r.Account == account || ledger.StreamOf(r.Account) == account {
			count(r)
		}
	}
	return n, err
}
