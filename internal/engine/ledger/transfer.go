package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Transfer is one movement between two accounts, for ever as it is.
type Transfer struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	PendingID string   `json:"pending_id,omitempty"` // what it resolves
	Debit     string   `json:"debit"`
	Credit    string   `json:"credit"`
	Amount    int64    `json:"amount"`
	Subject   string   `json:"subject"`
	Budgets   []string `json:"budgets,omitempty"`

	at time.Time
}

// Currency is that of both accounts.
func (x Transfer) Currency() string { return currencyOf(x.Debit) }

// Kinds of transfers. Stored: append only.
const (
	TransferDirect  = "direct"
	TransferPending = "pending"
	TransferPost    = "post" // resolves a pending one with what was used
	TransferVoid    = "void" // resolves a pending one with nothing
)

var periods = map[string]func(time.Time) time.Time{
	"":    func(time.Time) time.Time { return time.Time{} },
	"day": func(t time.Time) time.Time { return t.Truncate(24 * time.Hour) },
	"week": func(t time.Time) time.Time {
		return t.Truncate(24*time.Hour).AddDate(0, 0, -(int(t.Weekday())+6)%7)
	},
	"month": func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) },
}

func periodStart(period string, now time.Time) time.Time { return periods[period](now.UTC()) }

// budgets reads budgets under their locks, in the order in which all lock them;
// what was spent in a period that is over counts no more.
func (t *tx) budgets(tail string, args ...any) ([]Budget, error) {
	bs, err := selectAll(t.ctx, t.store, t.sql, "budgets", (*Budget).fields, tail+" ORDER BY id"+t.dialect.forUpdate, args...)
	for i := range bs {
		bs[i].roll(t.now)
	}
	return bs, err
}

func (b *Budget) roll(now time.Time) {
	if start := periodStart(b.Period, now); start.After(b.Since) {
		b.Since, b.Spent, b.Over = start, 0, 0
	}
}

func accountID(org, kind, currency string) string { return org + ":" + kind + ":" + currency }

// balance is an account under its lock, made where it is missing.
func (t *tx) balance(org, kind, currency string) (Balance, error) {
	b := Balance{ID: accountID(org, kind, currency), Org: org, Kind: kind, Currency: currency}
	if err := t.insertOnce("ledger.account", "accounts", b.fields()); err != nil {
		return b, err
	}
	rows, err := selectAll(t.ctx, t.store, t.sql, "accounts", (*Balance).fields, "WHERE id = ?"+t.dialect.forUpdate, b.ID)
	return one(rows, err, "account", b.ID)
}

// lookUp is an account under its lock, empty where it was never used.
func (t *tx) lookUp(org, kind, currency string) (Balance, error) {
	b := Balance{ID: accountID(org, kind, currency), Org: org, Kind: kind, Currency: currency}
	rows, err := selectAll(t.ctx, t.store, t.sql, "accounts", (*Balance).fields, "WHERE id = ?"+t.dialect.forUpdate, b.ID)
	if err != nil || len(rows) == 0 {
		return b, err
	}
	return rows[0], nil
}

// move records a transfer and changes both accounts. released is what a
// resolution takes off the pending columns.
func (t *tx) move(x Transfer, released int64) error {
	if x.at.IsZero() {
		x.at = t.now
	}
	if err := t.insert("ledger.transfer", "transfers", x.fields()); err != nil {
		return t.clash(err, x.ID)
	}
	for _, side := range []struct {
		id   string
		into func(*Balance) (pending, posted *int64)
	}{
		{x.Debit, func(b *Balance) (*int64, *int64) { return &b.DebitsPending, &b.DebitsPosted }},
		{x.Credit, func(b *Balance) (*int64, *int64) { return &b.CreditsPending, &b.CreditsPosted }},
	} {
		rows, err := selectAll(t.ctx, t.store, t.sql, "accounts", (*Balance).fields, "WHERE id = ?"+t.dialect.forUpdate, side.id)
		b, err := one(rows, err, "account", side.id)
		if err != nil {
			return err
		}
		pending, posted := side.into(&b)
		to := posted
		if x.Kind == TransferPending {
			to = pending
		}
		*pending -= released
		if x.Amount > math.MaxInt64-*posted-*pending { // so what is pending can always be posted
			return failuref(extensions.KindInvalid, "the account %s cannot hold so much", b.ID)
		}
		*to += x.Amount
		if err := t.update("ledger.account", "accounts", b.fields(), "id = ?", b.ID); err != nil {
			return err
		}
	}
	return nil
}

func (x *Transfer) fields() []field {
	return []field{
		text("id", &x.ID), text("kind", &x.Kind), optional("pending_id", &x.PendingID), text("debit", &x.Debit), text("credit", &x.Credit),
		number("amount", &x.Amount), text("subject", &x.Subject), budgetIDs(&x.Budgets), stamp("created_at", &x.at),
	}
}

// optional is NULL for the empty text.
func optional(name string, p *string) field {
	return field{name: name,
		value: func() (any, error) {
			if *p == "" {
				return nil, nil
			}
			return *p, nil
		},
		load: func(src any) error {
			*p, _ = src.(string)
			return nil
		}}
}

func budgetIDs(ids *[]string) field {
	f := text("budgets", new(string))
	f.value = func() (any, error) {
		b, err := json.Marshal(append([]string{}, *ids...))
		return string(b), err
	}
	f.load = func(src any) error {
		s, ok := src.(string)
		if !ok {
			return fmt.Errorf("%T is not text", src)
		}
		*ids = nil
		var list []string
		err := json.Unmarshal([]byte(s), &list)
		if len(list) > 0 {
			*ids = list
		}
		return err
	}
	return f
}

func (b *Balance) fields() []field {
	return []field{
		text("id", &b.ID), text("org", &b.Org), text("kind", &b.Kind), text("currency", &b.Currency),
		number("debits_pending", &b.DebitsPending), number("credits_pending", &b.CreditsPending),
		number("debits_posted", &b.DebitsPosted), number("credits_posted", &b.CreditsPosted),
	}
}

func (b *Budget) fields() []field {
	org := StreamOf(b.Account)
	return []field{
		text("id", &b.ID), text("org", &org), text("account", &b.Account), text("name", &b.Name), text("currency", &b.Currency),
		number("ceiling", &b.Limit), flag("hard", &b.Hard), text("period", &b.Period), stamp("since", &b.Since),
		number("reserved", &b.Reserved), number("spent", &b.Spent), number("over", &b.Over),
	}
}
