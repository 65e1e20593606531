package engine

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

type (
	// AccountView is an account's funds and limits.
	AccountView = account.View
	// Wallet is an organization's credit in one currency.
	Wallet = account.Wallet
	// CeilingView is a ceiling with its use.
	CeilingView = account.CeilingView
	// BudgetView is a budget with its use.
	BudgetView = account.BudgetView
	// BudgetSpec asks for a budget.
	BudgetSpec = account.BudgetSpec
	// UsageQuery selects the contents of a usage report.
	UsageQuery = account.UsageQuery
	// UsageReport is usage by consumer and place.
	UsageReport = account.UsageReport
	// UsageRow is one line of a usage report.
	UsageRow = account.UsageRow
	// LifeMeasured is the measure of one running sandbox.
	LifeMeasured = account.LifeMeasured
	// UsageSums are sums in one currency.
	UsageSums = account.UsageSums
	// PriceList is a price book of the catalog.
	PriceList = account.PriceList
	// HostCost is the cost of a host to its owner, by consumer.
	HostCost = account.HostCost
	// ExportQuery selects the contents of an export.
	ExportQuery = account.ExportQuery
	// Receiver is a destination of events.
	Receiver = account.Receiver
	// Sent is the result of sending events.
	Sent = account.Sent
	// Verified is the result of a check of the ledger.
	Verified = account.Verified
	// Event is one event of the ledger, for people.
	Event = account.Event
)

// Evidence is a record outside the ledger. It shows what the ledger alone cannot: that its end was cut off, or
// that it was rewritten as a whole.
type Evidence struct {
	// Pins are heads from earlier checks: "ledger:stream:seq:hash". Without the ledger's id, the pin is for this
	// ledger.
	Pins []string
	// Receipts are from a Terraform state.
	Receipts []Receipt
	// Exports are exported events, one CloudEvent per line, by the name shown in findings.
	Exports map[string]io.Reader
}

// CheckAccount checks the form "org/workspace": two names of letters, digits,
// ".", "_" and "-", each at most 63 characters and starting with a letter or digit.
func CheckAccount(name string) error { return ledger.CheckAccount(name) }

// UsageDimensions lists the names that a report may group by.
func UsageDimensions() []string { return account.UsageDimensions() }

// CheckUsageTime checks the form of a bound of UsageQuery; "" is valid.
func CheckUsageTime(s string) error { return account.CheckUsageTime(s) }

// AccountView reads the funds and limits of the engine's account. It writes nothing; without a ledger, the
// account has nothing.
func (e *Engine) AccountView(ctx context.Context) (AccountView, error) { return e.accounts.View(ctx) }

// GrantCredit puts an amount into an org's wallet; see [account.Account.Grant].
func (e *Engine) GrantCredit(ctx context.Context, org, amount, key, why string) (w Wallet, used string, err error) {
	return e.accounts.Grant(ctx, org, amount, key, why)
}

// Budgets lists the budgets of the account's org and of its workspaces.
func (e *Engine) Budgets(ctx context.Context) ([]BudgetView, error) { return e.accounts.Budgets(ctx) }

// SetBudget creates a budget or changes its limit, kind and period.
func (e *Engine) SetBudget(ctx context.Context, spec BudgetSpec) (BudgetView, error) {
	return e.accounts.SetBudget(ctx, spec)
}

// RemoveBudget removes a budget's limit; see [account.Account.RemoveBudget].
func (e *Engine) RemoveBudget(ctx context.Context, wholeOrg bool, name, currency string) (BudgetView, error) {
	return e.accounts.RemoveBudget(ctx, wholeOrg, name, currency)
}

// Usage reports on the engine's account. It writes nothing and dials nothing.
func (e *Engine) Usage(ctx context.Context, q UsageQuery) (UsageReport, error) {
	return e.accounts.Usage(ctx, q, nil)
}

// MeasuredUsage is Usage with what the places of running sandboxes measure. It asks them side by side, for a few
// seconds: what does not answer stays an estimate by time, and the report says so.
func (e *Engine) MeasuredUsage(ctx context.Context, q UsageQuery) (UsageReport, error) {
	return e.accounts.Usage(ctx, q, e.life.Measure)
}

// Prices lists the catalog's price books by id. It reads no ledger.
func (e *Engine) Prices() []PriceList { return e.accounts.Prices() }

// HostCost divides the cost of the account's host between from and to among the sandboxes that the ledger
// metered there. It reads only the ledger.
func (e *Engine) HostCost(ctx context.Context, name string, from, to time.Time) (HostCost, error) {
	h, err := e.LookupHost(ctx, name)
	if err != nil {
		return HostCost{}, err
	}
	return e.accounts.HostCost(ctx, h, from, to)
}

// ExportCharges writes the settled charges of the account as focus, csv or json, and returns their number.
func (e *Engine) ExportCharges(ctx context.Context, q ExportQuery, format string, w io.Writer) (int64, error) {
	return e.accounts.ExportCharges(ctx, q, format, w)
}

// ExportEvents writes the chain of the account's organization, one CloudEvent per line, and returns their
// number.
func (e *Engine) ExportEvents(ctx context.Context, q ExportQuery, w io.Writer) (int64, error) {
	return e.accounts.ExportEvents(ctx, q, w)
}

// SendEvents sends a receiver the events it lacks; see [account.Account.SendEvents].
func (e *Engine) SendEvents(ctx context.Context, r Receiver) (Sent, error) {
	return e.accounts.SendEvents(ctx, r)
}

// Events reads the newest limit events of the account's organization, oldest
// first; 0 = all. A non-empty id selects one sandbox, snapshot or host.
func (e *Engine) Events(ctx context.Context, id string, limit int) ([]Event, error) {
	return e.accounts.Events(ctx, id, limit)
}

// Verify checks the ledger, also against the evidence; see [account.Account.Verify].
func (e *Engine) Verify(ctx context.Context, ev Evidence) (Verified, error) {
	receipts := make([]account.Receipt, len(ev.Receipts))
	for i, r := range ev.Receipts {
		receipts[i] = account.Receipt{ID: r.ID, Ledger: r.Ledger, Head: r.Head}
	}
	return e.accounts.Verify(ctx, account.Evidence{Pins: ev.Pins, Receipts: receipts, Exports: ev.Exports})
}

type (
	// Purse is an exact limit on what several sandboxes may cost together.
	Purse = account.Purse
	// Share is what a [Purse] sets aside for one sandbox.
	Share = account.Share
)

// NewPurse returns a purse with a limit such as "5.00 USD"; anything else is KindInvalid.
func NewPurse(limit string) (*Purse, error) { return account.NewPurse(limit) }
