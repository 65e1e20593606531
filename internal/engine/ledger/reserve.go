package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
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

// move records a transfer and changes both accounts. released is what a
// resolution takes off the pending columns.
func (t *tx) move(x Transfer, released int64) error {
	x.at = t.now
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
		if *to > math.MaxInt64-x.Amount {
			return failuref(extensions.KindInvalid, "the account %s cannot hold so much", b.ID)
		}
		*to += x.Amount
		*pending -= released
		if err := t.update("ledger.account", "accounts", b.fields(), "id = ?", b.ID); err != nil {
			return err
		}
	}
	return nil
}

// reserve sets funds aside for a sandbox, or refuses with the limit that has
// the least.
func (t *tx) reserve(account, subject, key string, r *Reserve) ([]Transfer, error) {
	if r == nil || r.Amount == 0 {
		return nil, nil
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	org := StreamOf(account)
	bs, err := t.budgets("WHERE (account = ? OR account = ?) AND currency = ?", org, account, r.Currency)
	if err != nil {
		return nil, err
	}
	wallet, err := t.balance(org, AccountWallet, r.Currency)
	if err != nil {
		return nil, err
	}
	if err := r.refusal(wallet, bs); err != nil {
		return nil, err
	}
	x := Transfer{ID: key + "/reserve", Kind: TransferPending, Debit: wallet.ID, Amount: r.Amount, Subject: subject}
	for _, b := range bs {
		if b.Reserved > math.MaxInt64-r.Amount {
			return nil, failuref(extensions.KindInvalid, "the budget %s cannot hold so much", b.ID)
		}
		b.Reserved += r.Amount
		x.Budgets = append(x.Budgets, b.ID)
		if err := t.update("ledger.budget", "budgets", b.fields(), "id = ?", b.ID); err != nil {
			return nil, err
		}
	}
	if !r.Wallet { // a memo: both sides are the same account of no value
		memo, err := t.balance(org, "byok_memo", r.Currency)
		if err != nil {
			return nil, err
		}
		x.Debit, x.Credit = memo.ID, memo.ID
		return []Transfer{x}, t.move(x, 0)
	}
	revenue, err := t.balance(org, AccountRevenue, r.Currency)
	if err != nil {
		return nil, err
	}
	x.Credit = revenue.ID
	return []Transfer{x}, t.move(x, 0)
}

// refusal is that of the limit with the least available, nil if all suffice.
func (r Reserve) refusal(wallet Balance, bs []Budget) error {
	limit, least := "", int64(math.MaxInt64)
	if r.Wallet {
		limit, least = "wallet of "+wallet.Org, wallet.Available()
	}
	for _, b := range bs {
		if b.Hard && b.Available() < least {
			limit, least = fmt.Sprintf("budget %s of %s", b.Name, b.Account), b.Available()
		}
	}
	if r.Amount <= least {
		return nil
	}
	least = max(0, least)
	e := &Insufficient{Limit: limit, Need: r.Amount, Available: least, Currency: r.Currency, TTL: r.TTL, Fits: r.fits(least)}
	return failure(extensions.KindExhausted, "", e).WithRemedy("shorten ttl, end what is not needed, or have the limit raised")
}

// resolve settles what was set aside for a sandbox whose meter was closed with
// the charges, or which never had one.
func (t *tx) resolve(row Sandbox, key string, charges []chargeFact) ([]Transfer, error) {
	pending, err := selectAll(t.ctx, t.store, t.sql, "transfers", (*Transfer).fields,
		"WHERE subject = ? AND kind = 'pending' AND NOT EXISTS (SELECT 1 FROM transfers r WHERE r.pending_id = transfers.id) ORDER BY id", string(row.ID))
	if err != nil || len(pending) == 0 {
		return nil, err
	}
	used := map[string]int64{} // of the wallet; own keys and places cost what others are paid
	wallet := strings.Contains(pending[0].Debit, ":"+AccountWallet+":")
	for _, c := range charges {
		if !wallet || c.Memo == "" {
			used[c.Currency] += c.Amount
		}
	}
	var out []Transfer
	for i, p := range pending {
		from, err := selectAll(t.ctx, t.store, t.sql, "accounts", (*Balance).fields, "WHERE id = ?", p.Debit)
		if err != nil || len(from) != 1 {
			return nil, failuref(extensions.KindInternal, "the account %s of a transfer is missing: %w", p.Debit, err)
		}
		currency := from[0].Currency
		x := Transfer{ID: fmt.Sprintf("%s/resolve/%d", key, i), Kind: TransferPost, PendingID: p.ID, Debit: p.Debit, Credit: p.Credit,
			Amount: min(p.Amount, used[currency]), Subject: p.Subject, Budgets: p.Budgets}
		if x.Amount == 0 {
			x.Kind = TransferVoid
		}
		used[currency] -= x.Amount
		if err := t.move(x, p.Amount); err != nil {
			return nil, err
		}
		out = append(out, x)
		over := int64(0)
		if i == len(pending)-1 {
			over = used[currency]
		}
		if err := t.spend(p, x.Amount, over); err != nil {
			return nil, err
		}
		if over > 0 && from[0].Kind == AccountWallet {
			more, err := t.overage(row, key, currency, over)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	}
	return out, nil
}

// spend moves an amount of a budget from reserved to spent.
func (t *tx) spend(p Transfer, used, over int64) error {
	for _, id := range slices.Sorted(slices.Values(p.Budgets)) {
		bs, err := t.budgets("WHERE id = ?", id)
		if err != nil {
			return err
		}
		b, err := one(bs, nil, "budget", id)
		if err != nil {
			return err
		}
		b.Reserved -= p.Amount
		b.Spent += used + over
		b.Over += over
		if err := t.update("ledger.budget", "budgets", b.fields(), "id = ?", b.ID); err != nil {
			return err
		}
	}
	return nil
}

// overage books what was used above what had been set aside: from what is free
// in the wallet, the rest as receivable. No usage is lost, no wallet overdrawn.
func (t *tx) overage(row Sandbox, key, currency string, amount int64) ([]Transfer, error) {
	org := StreamOf(row.Account)
	wallet, err := t.balance(org, AccountWallet, currency)
	if err != nil {
		return nil, err
	}
	owed, err := t.balance(org, AccountReceivable, currency)
	if err != nil {
		return nil, err
	}
	revenue, err := t.balance(org, AccountRevenue, currency)
	if err != nil {
		return nil, err
	}
	paid := min(amount, max(0, wallet.Available()))
	var out []Transfer
	for _, part := range []struct {
		name, from string
		amount     int64
	}{{"overage", wallet.ID, paid}, {"receivable", owed.ID, amount - paid}} {
		if part.amount == 0 {
			continue
		}
		x := Transfer{ID: key + "/" + part.name, Kind: TransferDirect, Debit: part.from, Credit: revenue.ID, Amount: part.amount, Subject: string(row.ID)}
		if err := t.move(x, 0); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
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
