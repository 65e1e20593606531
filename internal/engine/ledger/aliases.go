package ledger

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
)

// These aliases give callers of a ledger the types of bank and chain under one name.

type (
	// Balance is [bank.Balance].
	Balance = bank.Balance
	// Beside is [bank.Beside].
	Beside = bank.Beside
	// Budget is [bank.Budget].
	Budget = bank.Budget
	// Ceiling is [bank.Ceiling].
	Ceiling = bank.Ceiling
	// Charge is [bank.Charge].
	Charge = bank.Charge
	// ChargeRow is [bank.ChargeRow].
	ChargeRow = bank.ChargeRow
	// Dimension is [bank.Dimension].
	Dimension = bank.Dimension
	// Insufficient is [bank.Insufficient].
	Insufficient = bank.Insufficient
	// Meter is [bank.Meter].
	Meter = bank.Meter
	// MeterClose is [bank.MeterClose].
	MeterClose = bank.MeterClose
	// MeterOpen is [bank.MeterOpen].
	MeterOpen = bank.MeterOpen
	// MeterOps is [bank.MeterOps].
	MeterOps = bank.MeterOps
	// Pace is [bank.Pace].
	Pace = bank.Pace
	// Reserve is [bank.Reserve].
	Reserve = bank.Reserve
	// Segment is [bank.Segment].
	Segment = bank.Segment
	// Share is [bank.Share].
	Share = bank.Share
	// TooFast is [bank.TooFast].
	TooFast = bank.TooFast
	// Transfer is [bank.Transfer].
	Transfer = bank.Transfer
	// Unpriced is [bank.Unpriced].
	Unpriced = bank.Unpriced
	// UsageRow is [bank.UsageRow].
	UsageRow = bank.UsageRow

	// Event is [chain.Event].
	Event = chain.Event
	// Head is [chain.Head].
	Head = chain.Head
)

// Kinds of accounts, and the dimensions that group usage.
const (
	AccountBYOK       = bank.AccountBYOK
	AccountInfra      = bank.AccountInfra
	AccountReceivable = bank.AccountReceivable
	AccountWallet     = bank.AccountWallet
	NoLimit           = bank.NoLimit
	ByAccount         = bank.ByAccount
	ByActor           = bank.ByActor
	ByComponent       = bank.ByComponent
	ByDay             = bank.ByDay
	ByExtension       = bank.ByExtension
	ByHarness         = bank.ByHarness
	ByHost            = bank.ByHost
	ByProfile         = bank.ByProfile
	ByRunID           = bank.ByRunID
	BySandbox         = bank.BySandbox
)
