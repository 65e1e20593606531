package ledger

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Balance is an account of an org in one currency. Amounts are nano-units.
type Balance struct {
	ID       string // org, kind and currency
	Org      string
	Kind     string // wallet | platform_revenue | receivable | grants | byok_memo | infra_memo | exposure_memo
	Currency string

	DebitsPending, CreditsPending, DebitsPosted, CreditsPosted int64
}

// Kinds of accounts. Only the wallet is asked before something begins; it
// never goes below zero.
const (
	AccountWallet     = "wallet"
	AccountRevenue    = "platform_revenue"
	AccountReceivable = "receivable"
	AccountGrants     = "grants"
)

// Accounts of memos: both sides of their transfers are the same, and no money
// moves.
const (
	AccountBYOK     = "byok_memo"     // a bill that others are sent: the user's own key
	AccountInfra    = "infra_memo"    // what places of the user's own cost
	AccountExposure = "exposure_memo" // what may have been used, and nobody can tell
)

// Available is what a wallet can still set aside.
func (b Balance) Available() int64 { return b.CreditsPosted - b.DebitsPosted - b.DebitsPending }

// Budget bounds what an account, or all of an org, sets aside and spends in a
// period.
type Budget struct {
	ID       string // set by the ledger
	Account  string // "org" or "org/workspace"
	Name     string
	Currency string
	Limit    int64 // nano-units
	// Hard refuses what would pass the limit; else passing it is only told.
	Hard   bool
	Period string // "" = for ever, day | week | month, in UTC; weeks begin on Monday

	Since    time.Time // the period's beginning
	Reserved int64     // set aside for what lives
	Spent    int64     // in the period
	Over     int64     // of it, what was more than had been set aside
}

// NoLimit is the Limit of a budget that was removed: it keeps count, since what
// lives may be held in it, and bounds nothing.
const NoLimit = math.MaxInt64

// Removed reports whether it bounds nothing any more.
func (b Budget) Removed() bool { return b.Limit == NoLimit }

// ResetsAt is when the next period begins; zero is never.
func (b Budget) ResetsAt() time.Time {
	switch b.Period {
	case "day":
		return b.Since.AddDate(0, 0, 1)
	case "week":
		return b.Since.AddDate(0, 0, 7)
	case "month":
		return b.Since.AddDate(0, 1, 0)
	}
	return time.Time{}
}

// Available is what is left below the limit; it may be negative.
func (b Budget) Available() int64 {
	left := b.Limit - b.Reserved // neither is below zero
	if left < math.MinInt64+b.Spent {
		return math.MinInt64
	}
	return left - b.Spent
}

// add is the sum of two amounts that are not negative, or the most there is.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Owed is what a receivable is still owed.
func (b Balance) Owed() int64 { return b.DebitsPosted - b.CreditsPosted }

// Grant puts credit into an org's wallet. What the org owes is paid of it first.
type Grant struct {
	Key      string // makes it happen once
	Org      string
	Currency string
	Amount   int64 // nano-units, positive
	Note     Note  // Type defaults to "funds.granted"
}

// Grant implements Ledger.
func (s *store) Grant(ctx context.Context, g Grant) (Balance, error) {
	if err := plain("key", g.Key); err != nil {
		return Balance{}, err
	}
	if StreamOf(g.Org) == "" || StreamOf(g.Org) != g.Org || g.Currency == "" || g.Amount <= 0 {
		return Balance{}, failuref(extensions.KindInvalid, "a grant needs an org, a currency and an amount above zero")
	}
	var wallet Balance
	err := s.write(ctx, func(t *tx) error {
		if err := t.queue(g.Org); err != nil {
			return err
		}
		_, done, err := t.replayed(g.Key)
		switch {
		case err != nil:
		case done:
			err = t.granted(g)
		default:
			err = t.grant(g)
		}
		if err != nil {
			return err
		}
		wallet, err = t.balance(g.Org, AccountWallet, g.Currency)
		return err
	})
	return wallet, err
}

func (t *tx) grant(g Grant) error {
	from, err := t.balance(g.Org, AccountGrants, g.Currency)
	if err != nil {
		return err
	}
	to, err := t.balance(g.Org, AccountWallet, g.Currency)
	if err != nil {
		return err
	}
	x := Transfer{ID: g.Key, Kind: TransferDirect, Debit: from.ID, Credit: to.ID, Amount: g.Amount, Subject: to.ID}
	if err := t.move(x, 0); err != nil {
		return err
	}
	paid, err := t.payOwed(g.Org, g.Currency, g.Key+"/owed", to.ID)
	if err != nil {
		return err
	}
	return t.append(fact{account: g.Org, kind: g.Note.typed("funds.granted"), subject: to.ID, operation: g.Key,
		data: factData{Funds: append([]Transfer{x}, paid...), Note: g.Note.Data}})
}

// payOwed pays what an org owes from what is free in its wallet.
func (t *tx) payOwed(org, currency, id, subject string) ([]Transfer, error) {
	owed, err := t.lookUp(org, AccountReceivable, currency)
	if err != nil || owed.Owed() == 0 {
		return nil, err
	}
	wallet, err := t.lookUp(org, AccountWallet, currency)
	if err != nil || wallet.Available() <= 0 {
		return nil, err
	}
	x := Transfer{ID: id, Kind: TransferDirect, Debit: wallet.ID, Credit: owed.ID, Amount: min(owed.Owed(), wallet.Available()), Subject: subject}
	return []Transfer{x}, t.move(x, 0)
}

// granted checks that what the key did before was this grant.
func (t *tx) granted(g Grant) error {
	before, err := selectAll(t.ctx, t.store, t.sql, "transfers", (*Transfer).fields, "WHERE id = ?", g.Key)
	if err != nil {
		return err
	}
	wallet := accountID(g.Org, AccountWallet, g.Currency)
	if len(before) == 1 && before[0].Credit == wallet && before[0].Amount == g.Amount {
		return nil
	}
	return failuref(extensions.KindConflict, "the key %q was used before, and not for %s %s to %s", g.Key, meter.Amount(g.Amount), g.Currency, g.Org).
		WithRemedy("use a new key for a new grant")
}

// PutBudget implements Ledger.
func (s *store) PutBudget(ctx context.Context, b Budget) (Budget, error) {
	for _, r := range []struct{ name, value string }{{"account", b.Account}, {"name of the budget", b.Name}, {"currency", b.Currency}} {
		if err := errors.Join(plain(r.name, r.value), short(r.name, r.value, maxName)); err != nil {
			return b, err
		}
	}
	if b.Removed() && b.Hard {
		return b, failuref(extensions.KindInvalid, "the budget %q is hard and has the limit that stands for none", b.Name).WithRemedy("give a lower limit")
	}
	if _, known := periods[b.Period]; !known || b.Limit < 0 {
		return b, failuref(extensions.KindInvalid, "the budget %q has a negative limit or an unknown period %q", b.Name, b.Period).
			WithRemedy("use day, week, month, or no period")
	}
	b.ID = b.Account + ":" + b.Name + ":" + b.Currency
	err := s.write(ctx, func(t *tx) error {
		if err := t.queue(b.Account); err != nil {
			return err
		}
		old, err := t.budgets("WHERE id = ?", b.ID)
		if err != nil {
			return err
		}
		if len(old) == 0 {
			b.Since = periodStart(b.Period, t.now)
			err = t.insert("ledger.budget", "budgets", b.fields())
		} else {
			b.Since, b.Reserved, b.Spent, b.Over = old[0].Since, old[0].Reserved, old[0].Spent, old[0].Over
			if b.Period != old[0].Period {
				b.Since = periodStart(b.Period, t.now)
			}
			err = t.update("ledger.budget", "budgets", b.fields(), "id = ?", b.ID)
		}
		if err != nil {
			return err
		}
		kind := "budget.set"
		if b.Removed() {
			kind = "budget.removed"
		}
		return t.append(fact{account: b.Account, kind: kind, subject: b.ID, data: factData{Budget: &b}})
	})
	return b, err
}

// Balances implements Ledger.
func (s *store) Balances(ctx context.Context, org string) ([]Balance, error) {
	return readAll(ctx, s, "accounts", (*Balance).fields, "WHERE org = ? ORDER BY id", org)
}

// Budgets implements Ledger.
func (s *store) Budgets(ctx context.Context, org string) ([]Budget, error) {
	bs, err := readAll(ctx, s, "budgets", (*Budget).fields, "WHERE org = ? ORDER BY id", org)
	for i := range bs {
		bs[i].roll(s.now())
	}
	return bs, err
}
