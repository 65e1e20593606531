package bank

import (
	"math"
	"strings"
)

// Balance is an account of an org in one currency. Amounts are nano-units.
type Balance struct {
	ID       string // org, kind and currency
	Org      string
	Kind     string // wallet | platform_revenue | receivable | grants | byok_memo | infra_memo | exposure_memo
	Currency string

	DebitsPending, CreditsPending, DebitsPosted, CreditsPosted int64
}

// Kinds of accounts. Only the wallet can refuse a begin; it never goes below zero.
const (
	AccountWallet     = "wallet"
	AccountRevenue    = "platform_revenue"
	AccountReceivable = "receivable"
	AccountGrants     = "grants"
)

// Memo accounts: their transfers have the same account on both sides, and no money moves.
const (
	AccountBYOK     = "byok_memo"     // billed by others: the user's own key
	AccountInfra    = "infra_memo"    // the cost of the user's own places
	AccountExposure = "exposure_memo" // what may have been used and will never be known
)

// Available returns what a wallet can still set aside.
func (b Balance) Available() int64 { return b.CreditsPosted - b.DebitsPosted - b.DebitsPending }

// Owed returns what is owed to a receivable.
func (b Balance) Owed() int64 { return b.DebitsPosted - b.CreditsPosted }

// title names a wallet in messages.
func (b Balance) title() string { return "wallet of " + b.Org }

// OrgOf returns the org of an account "org/workspace": the part before "/".
func OrgOf(account string) string {
	org, _, _ := strings.Cut(account, "/")
	return org
}

// AccountID returns the id of an org's account: org, kind and currency. Kind and currency have no colon.
func AccountID(org, kind, currency string) string { return org + ":" + kind + ":" + currency }

func currencyOf(account string) string { return account[strings.LastIndexByte(account, ':')+1:] }

func kindOf(account string) string {
	rest := account[:max(0, strings.LastIndexByte(account, ':'))]
	return rest[strings.LastIndexByte(rest, ':')+1:]
}

// add returns the sum of two non-negative amounts, saturating at the largest.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
