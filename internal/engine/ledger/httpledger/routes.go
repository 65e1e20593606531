package httpledger

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Operations, as they stand in a path. Released: append only.
const (
	opHello         = "hello"
	opHolder        = "holder"
	opHolderAlive   = "holder-alive"
	opBegin         = "begin"
	opApply         = "apply"
	opReplay        = "replay"
	opGet           = "get"
	opByName        = "by-name"
	opList          = "list"
	opOccupancy     = "occupancy"
	opReadyTimes    = "ready-times"
	opLifetimes     = "lifetimes"
	opOpenIntents   = "open-intents"
	opIntent        = "intent"
	opPutHost       = "put-host"
	opHost          = "host"
	opHosts         = "hosts"
	opDeleteHost    = "delete-host"
	opBeginSnapshot = "begin-snapshot"
	opApplySnapshot = "apply-snapshot"
	opGetSnapshot   = "get-snapshot"
	opSnapshots     = "snapshots"
	opMeters        = "meters"
	opCharges       = "charges"
	opUsage         = "usage"
	opEachCharge    = "each-charge"
	opEachOpenMeter = "each-open-meter"
	opHeld          = "held"
	opQuote         = "quote"
	opGrant         = "grant"
	opPutBudget     = "put-budget"
	opBalances      = "balances"
	opBudgets       = "budgets"
	opEvents        = "events"
	opHead          = "head"
	opOutbox        = "outbox"
	opMoveOutbox    = "move-outbox"
	opVerify        = "verify"
	opPaces         = "paces"
)

// maxHolder bounds the names of holders, in bytes; ours have 45.
const maxHolder = 100

// What is asked, where it is more than one value or none.
type (
	nothing struct{}
	// welcome says which ledger this is, and whose the token.
	welcome struct{ Ledger, Account string }
	// holding makes or renews a holder; a Term of 0 gives it up.
	holding struct {
		ID   ledger.HolderID
		Term time.Duration
	}
	named struct{ Account, Name string }
	life  struct {
		Begin   *ledger.Begin
		Changes []ledger.Change
	}
	readiness struct {
		Account, Extension, Host string
		Newest                   int
	}
	lives struct {
		Account, Profile, Extension string
		Newest                      int
	}
	eventQuery struct {
		Stream string
		From   int64
		Limit  int
	}
	// eventPage is some events; Next is where the rest begins, 0 = nowhere.
	eventPage struct {
		Events []ledger.Event
		Next   int64
	}
	outboxQuery struct{ Sink, Stream string }
)

// client is who asks, and what it sees of the ledger.
type client struct {
	ledger.Ledger
	Principal
	server *Server
}

// route reads a question, asks and gives the answer.
type route func(ctx context.Context, c client, body io.Reader) (any, error)

func on[Q, A any](f func(ctx context.Context, c client, q Q) (A, error)) route {
	return func(ctx context.Context, c client, body io.Reader) (any, error) {
		var q Q
		if err := decode(body, &q); err != nil {
			return nil, oops(extensions.KindInvalid, "the request cannot be read: %w", err).
				WithRemedy("use a client that is not newer than the server")
		}
		return f(ctx, c, q)
	}
}

func done(err error) (nothing, error) { return nothing{}, err }

// routes are all operations.
var routes = map[string]route{
	opHello: on(func(_ context.Context, c client, _ nothing) (welcome, error) {
		return welcome{c.ID(), c.Account}, nil
	}),
	opHolder: on(func(ctx context.Context, c client, q holding) (ledger.HolderID, error) {
		if q.ID == "" {
			q.ID = c.newHolder(c.server.now())
		} else if !c.Owns(q.ID) || len(q.ID) > maxHolder {
			return "", oops(extensions.KindNotFound, "there is no holder %q", q.ID)
		}
		if q.Term != 0 {
			q.Term = lease.Term(q.Term)
		}
		return q.ID, c.server.lessor.Lease(ctx, q.ID, q.Term)
	}),
	opHolderAlive: on(func(ctx context.Context, c client, q ledger.HolderID) (bool, error) { return c.HolderAlive(ctx, q) }),
	opBegin:       on(func(ctx context.Context, c client, q ledger.Begin) (ledger.Sandbox, error) { return c.Begin(ctx, q) }),
	opApply:       on(func(ctx context.Context, c client, q ledger.Change) (ledger.Sandbox, error) { return c.Apply(ctx, q) }),
	opReplay: on(func(ctx context.Context, c client, q life) (ledger.Sandbox, error) {
		return c.Replay(ctx, q.Begin, q.Changes...)
	}),
	opGet: on(func(ctx context.Context, c client, q extensions.ID) (ledger.Sandbox, error) { return c.Get(ctx, q) }),
	opByName: on(func(ctx context.Context, c client, q named) (ledger.Sandbox, error) {
		return c.ByName(ctx, q.Account, q.Name)
	}),
	opList:      on(func(ctx context.Context, c client, q ledger.Filter) ([]ledger.Sandbox, error) { return c.List(ctx, q) }),
	opOccupancy: on(func(ctx context.Context, c client, q string) ([]ledger.Occupied, error) { return c.Occupancy(ctx, q) }),
	opReadyTimes: on(func(ctx context.Context, c client, q readiness) ([]ledger.Readiness, error) {
		return c.ReadyTimes(ctx, q.Account, q.Extension, q.Host, min(q.Newest, page))
	}),
	opLifetimes: on(func(ctx context.Context, c client, q lives) ([]ledger.Lifetime, error) {
		return c.Lifetimes(ctx, q.Account, q.Profile, q.Extension, min(q.Newest, page))
	}),
	opOpenIntents: on(func(ctx context.Context, c client, q ledger.IntentFilter) ([]ledger.Intent, error) {
		return c.OpenIntents(ctx, q)
	}),
	opIntent:  on(func(ctx context.Context, c client, q string) (ledger.Intent, error) { return c.Intent(ctx, q) }),
	opPutHost: on(func(ctx context.Context, c client, q ledger.Host) (ledger.Host, error) { return c.PutHost(ctx, q) }),
	opHost: on(func(ctx context.Context, c client, q named) (ledger.Host, error) {
		return c.Host(ctx, q.Account, q.Name)
	}),
	opHosts: on(func(ctx context.Context, c client, q string) ([]ledger.Host, error) { return c.Hosts(ctx, q) }),
	opDeleteHost: on(func(ctx context.Context, c client, q named) (nothing, error) {
		return done(c.DeleteHost(ctx, q.Account, q.Name))
	}),
	opBeginSnapshot: on(func(ctx context.Context, c client, q ledger.BeginSnapshot) (ledger.Snapshot, error) {
		return c.BeginSnapshot(ctx, q)
	}),
	opApplySnapshot: on(func(ctx context.Context, c client, q ledger.SnapshotChange) (ledger.Snapshot, error) {
		return c.ApplySnapshot(ctx, q)
	}),
	opGetSnapshot: on(func(ctx context.Context, c client, q string) (ledger.Snapshot, error) { return c.GetSnapshot(ctx, q) }),
	opSnapshots: on(func(ctx context.Context, c client, q ledger.SnapshotFilter) ([]ledger.Snapshot, error) {
		return c.Snapshots(ctx, q)
	}),
	opMeters: on(func(ctx context.Context, c client, q extensions.ID) ([]ledger.Meter, error) { return c.Meters(ctx, q) }),
	opCharges: on(func(ctx context.Context, c client, q extensions.ID) ([]ledger.Charge, error) {
		return c.Charges(ctx, q)
	}),
	opUsage: on(func(ctx context.Context, c client, q usageQuery) ([]ledger.UsageRow, error) {
		return c.Usage(ctx, q.Filter, q.By...)
	}),
	opEachCharge: on(func(ctx context.Context, c client, q chargeQuery) (chargePage, error) { return charges(ctx, c, q) }),
	opEachOpenMeter: on(func(ctx context.Context, c client, q meterQuery) ([]ledger.Meter, error) {
		return openMeters(ctx, c, q)
	}),
	opHeld:  on(func(ctx context.Context, c client, q extensions.ID) ([]ledger.Transfer, error) { return c.Held(ctx, q) }),
	opQuote: on(func(ctx context.Context, c client, q string) (ledger.Quote, error) { return c.Quote(ctx, q) }),
	opGrant: on(func(ctx context.Context, c client, q ledger.Grant) (ledger.Balance, error) { return c.Grant(ctx, q) }),
	opPutBudget: on(func(ctx context.Context, c client, q ledger.Budget) (ledger.Budget, error) {
		return c.PutBudget(ctx, q)
	}),
	opBalances: on(func(ctx context.Context, c client, q string) ([]ledger.Balance, error) { return c.Balances(ctx, q) }),
	opBudgets:  on(func(ctx context.Context, c client, q string) ([]ledger.Budget, error) { return c.Budgets(ctx, q) }),
	opPaces: on(func(ctx context.Context, c client, q ledger.PaceQuery) ([]ledger.Pace, error) {
		return c.Paces(ctx, q)
	}),
	opEvents: on(func(ctx context.Context, c client, q eventQuery) (eventPage, error) {
		limit := max(1, min(q.Limit, page))
		p := eventPage{}
		var err error
		if p.Events, err = c.Events(ctx, q.Stream, q.From, limit); err == nil && len(p.Events) == limit {
			p.Next = p.Events[limit-1].Seq + 1
		}
		return p, err
	}),
	opHead: on(func(ctx context.Context, c client, q string) (ledger.Head, error) { return c.Head(ctx, q) }),
	opOutbox: on(func(ctx context.Context, c client, q outboxQuery) (ledger.Outbox, error) {
		return c.Outbox(ctx, q.Sink, q.Stream)
	}),
	opMoveOutbox: on(func(ctx context.Context, c client, q ledger.OutboxStep) (ledger.Outbox, error) {
		return c.MoveOutbox(ctx, q)
	}),
	opVerify: on(func(ctx context.Context, c client, q []ledger.Head) (ledger.Report, error) {
		release, err := c.server.alone(ctx)
		if err != nil {
			return ledger.Report{}, err
		}
		defer release()
		return c.Verify(ctx, q...)
	}),
}
