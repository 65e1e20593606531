package engine

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/account"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

type (
	// AccountView is what an account has and what bounds it.
	AccountView = account.View
	// Wallet is an organization's credit in one currency.
	Wallet = account.Wallet
	// CeilingView is a ceiling with what counts against it.
	CeilingView = account.CeilingView
	// BudgetView is a budget with what counts against it.
	BudgetView = account.BudgetView
	// BudgetSpec asks for a budget.
	BudgetSpec = account.BudgetSpec
	// UsageQuery says what a usage report is about.
	UsageQuery = account.UsageQuery
	// UsageReport is what was used, by whom and where.
	UsageReport = account.UsageReport
	// UsageRow is one line of it.
	UsageRow = account.UsageRow
	// UsageSums are sums in one currency.
	UsageSums = account.UsageSums
	// PriceList is a price book of the catalog.
	PriceList = account.PriceList
	// HostCost is what a host cost its owner, and whom for.
	HostCost = account.HostCost
	// ExportQuery selects what is exported.
	ExportQuery = account.ExportQuery
	// Receiver is where events are sent.
	Receiver = account.Receiver
	// Sent tells what came of sending events.
	Sent = account.Sent
	// Verified is what a check of the ledger found.
	Verified = account.Verified
	// Event is one ledger entry for people.
	Event = account.Event
)

// Evidence is what was kept outside a ledger, and shows what the ledger alone
// cannot: that its end was cut off, or that it was rewritten as a whole.
type Evidence struct {
	// Pins are heads told earlier: "ledger:stream:seq:hash", or without the
	// ledger's id, which is then that of this one.
	Pins []string
	// Receipts are those of a Terraform state.
	Receipts []Receipt
	// Exports are exported events, one CloudEvent a line, by the name to tell
	// them by.
	Exports map[string]io.Reader
}

// CheckAccount checks the form "org/workspace": two names of letters, digits,
// ".", "_" and "-", each at most 63 characters and starting with a letter or digit.
func CheckAccount(name string) error { return ledger.CheckAccount(name) }

// UsageDimensions are the words a report may be told apart by.
func UsageDimensions() []string { return account.UsageDimensions() }

// CheckUsageTime checks the form of a bound of UsageQuery; "" is one.
func CheckUsageTime(s string) error { return account.CheckUsageTime(s) }

// AccountView reads what the engine's account has. It writes nothing; a missing
// ledger is an account without anything.
func (e *Engine) AccountView(ctx context.Context) (AccountView, error) { return e.accounts.View(ctx) }

// GrantCredit puts an amount into an org's wallet; see [account.Account.Grant].
func (e *Engine) GrantCredit(ctx context.Context, org, amount, key, why string) (w Wallet, used string, err error) {
	return e.accounts.Grant(ctx, org, amount, key, why)
}

// Budgets lists the budgets of the account's org and of its workspaces.
func (e *Engine) Budgets(ctx context.Context) ([]BudgetView, error) { return e.accounts.Budgets(ctx) }

// SetBudget makes a budget or changes its limit, kind and period.
func (e *Engine) SetBudget(ctx context.Context, spec BudgetSpec) (BudgetView, error) {
	return e.accounts.SetBudget(ctx, spec)
}

// RemoveBudget takes a budget's limit away; see [account.Account.RemoveBudget].
func (e *Engine) RemoveBudget(ctx context.Context, wholeOrg bool, name, currency string) (BudgetView, error) {
	return e.accounts.RemoveBudget(ctx, wholeOrg, name, currency)
}

// Usage reports on the engine's account. It writes nothing.
func (e *Engine) Usage(ctx context.Context, q UsageQuery) (UsageReport, error) {
	return e.accounts.Usage(ctx, q)
}

// Prices lists the catalog's price books by id. It reads no ledger.
func (e *Engine) Prices() []PriceList { return e.accounts.Prices() }

// HostCost shares what the account's host cost between from and to among the
// sandboxes that the ledger metered there. It reads the ledger alone.
func (e *Engine) HostCost(ctx context.Context, name string, from, to time.Time) (HostCost, error) {
	h, err := e.LookupHost(ctx, name)
	if err != nil {
		return HostCost{}, err
	}
	return e.accounts.HostCost(ctx, h, from, to)
}

// ExportCharges writes the settled charges of the account as focus, csv or
// json, and returns their number.
func (e *Engine) ExportCharges(ctx context.Context, q ExportQuery, format string, w io.Writer) (int64, error) {
	return e.accounts.ExportCharges(ctx, q, format, w)
}

// ExportEvents writes the chain of the account's organization, one CloudEvent
// a line, and returns their number.
func (e *Engine) ExportEvents(ctx context.Context, q ExportQuery, w io.Writer) (int64, error) {
	return e.accounts.ExportEvents(ctx, q, w)
}

// SendEvents sends a receiver the events that it has not got; see
// [account.Account.SendEvents].
func (e *Engine) SendEvents(ctx context.Context, r Receiver) (Sent, error) {
	return e.accounts.SendEvents(ctx, r)
}

// Events reads the newest limit events of the account's organization, oldest
// first; 0 = all. A non-empty id selects one sandbox, snapshot or host.
func (e *Engine) Events(ctx context.Context, id string, limit int) ([]Event, error) {
	return e.accounts.Events(ctx, id, limit)
}

// Verify checks the ledger, and what the evidence tells of it; see
// [account.Account.Verify].
func (e *Engine) Verify(ctx context.Context, ev Evidence) (Verified, error) {
	receipts := make([]account.Receipt, len(ev.Receipts))
	for i, r := range ev.Receipts {
		receipts[i] = account.Receipt{ID: r.ID, Ledger: r.Ledger, Head: r.Head}
	}
	return e.accounts.Verify(ctx, account.Evidence{Pins: ev.Pins, Receipts: receipts, Exports: ev.Exports})
}
