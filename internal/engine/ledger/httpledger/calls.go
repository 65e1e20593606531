package httpledger

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// HolderAlive implements ledger.Ledger.
func (c *Client) HolderAlive(ctx context.Context, id ledger.HolderID) (bool, error) {
	return ask[bool](ctx, c, opHolderAlive, id)
}

// Begin implements ledger.Ledger.
func (c *Client) Begin(ctx context.Context, b ledger.Begin) (ledger.Sandbox, error) {
	if err := c.agrees(); err != nil {
		return ledger.Sandbox{}, err
	}
	return write[ledger.Sandbox](ctx, c, opBegin, b)
}

// Apply implements ledger.Ledger.
func (c *Client) Apply(ctx context.Context, ch ledger.Change) (ledger.Sandbox, error) {
	if ch.NextGeneration {
		if err := c.agrees(); err != nil {
			return ledger.Sandbox{}, err
		}
	}
	return write[ledger.Sandbox](ctx, c, opApply, ch)
}

// Replay implements ledger.Ledger.
func (c *Client) Replay(ctx context.Context, b *ledger.Begin, cs ...ledger.Change) (ledger.Sandbox, error) {
	return write[ledger.Sandbox](ctx, c, opReplay, life{b, cs})
}

// Get implements ledger.Ledger.
func (c *Client) Get(ctx context.Context, id extensions.ID) (ledger.Sandbox, error) {
	return ask[ledger.Sandbox](ctx, c, opGet, id)
}

// ByName implements ledger.Ledger.
func (c *Client) ByName(ctx context.Context, account, name string) (ledger.Sandbox, error) {
	return ask[ledger.Sandbox](ctx, c, opByName, named{account, name})
}

// List implements ledger.Ledger.
func (c *Client) List(ctx context.Context, f ledger.Filter) ([]ledger.Sandbox, error) {
	return ask[[]ledger.Sandbox](ctx, c, opList, f)
}

// Occupancy implements ledger.Ledger.
func (c *Client) Occupancy(ctx context.Context, account string) ([]ledger.Occupied, error) {
	return ask[[]ledger.Occupied](ctx, c, opOccupancy, account)
}

// ReadyTimes implements ledger.Ledger.
func (c *Client) ReadyTimes(ctx context.Context, account, extension, host string, newest int) ([]ledger.Readiness, error) {
	return ask[[]ledger.Readiness](ctx, c, opReadyTimes, readiness{account, extension, host, newest})
}

// OpenIntents implements ledger.Ledger.
func (c *Client) OpenIntents(ctx context.Context, f ledger.IntentFilter) ([]ledger.Intent, error) {
	return ask[[]ledger.Intent](ctx, c, opOpenIntents, f)
}

// Intent implements ledger.Ledger.
func (c *Client) Intent(ctx context.Context, key string) (ledger.Intent, error) {
	return ask[ledger.Intent](ctx, c, opIntent, key)
}

// PutHost implements ledger.Ledger.
func (c *Client) PutHost(ctx context.Context, h ledger.Host) (ledger.Host, error) {
	return write[ledger.Host](ctx, c, opPutHost, h)
}

// Host implements ledger.Ledger.
func (c *Client) Host(ctx context.Context, account, name string) (ledger.Host, error) {
	return ask[ledger.Host](ctx, c, opHost, named{account, name})
}

// Hosts implements ledger.Ledger.
func (c *Client) Hosts(ctx context.Context, account string) ([]ledger.Host, error) {
	return ask[[]ledger.Host](ctx, c, opHosts, account)
}

// DeleteHost implements ledger.Ledger.
func (c *Client) DeleteHost(ctx context.Context, account, name string) error {
	_, err := write[nothing](ctx, c, opDeleteHost, named{account, name})
	return err
}

// BeginSnapshot implements ledger.Ledger.
func (c *Client) BeginSnapshot(ctx context.Context, b ledger.BeginSnapshot) (ledger.Snapshot, error) {
	return write[ledger.Snapshot](ctx, c, opBeginSnapshot, b)
}

// ApplySnapshot implements ledger.Ledger.
func (c *Client) ApplySnapshot(ctx context.Context, ch ledger.SnapshotChange) (ledger.Snapshot, error) {
	return write[ledger.Snapshot](ctx, c, opApplySnapshot, ch)
}

// GetSnapshot implements ledger.Ledger.
func (c *Client) GetSnapshot(ctx context.Context, id string) (ledger.Snapshot, error) {
	return ask[ledger.Snapshot](ctx, c, opGetSnapshot, id)
}

// Snapshots implements ledger.Ledger.
func (c *Client) Snapshots(ctx context.Context, f ledger.SnapshotFilter) ([]ledger.Snapshot, error) {
	return ask[[]ledger.Snapshot](ctx, c, opSnapshots, f)
}

// Meters implements ledger.Ledger.
func (c *Client) Meters(ctx context.Context, id extensions.ID) ([]ledger.Meter, error) {
	return ask[[]ledger.Meter](ctx, c, opMeters, id)
}

// Charges implements ledger.Ledger.
func (c *Client) Charges(ctx context.Context, id extensions.ID) ([]ledger.Charge, error) {
	return ask[[]ledger.Charge](ctx, c, opCharges, id)
}

// Usage implements ledger.Ledger.
func (c *Client) Usage(ctx context.Context, f ledger.UsageFilter, by ...ledger.Dimension) ([]ledger.UsageRow, error) {
	return ask[[]ledger.UsageRow](ctx, c, opUsage, usageQuery{f, by})
}

// EachCharge implements ledger.Ledger, one page after the other.
func (c *Client) EachCharge(ctx context.Context, f ledger.UsageFilter, yield func(ledger.ChargeRow) error) error {
	q := chargeQuery{Filter: f}
	for {
		p, err := ask[chargePage](ctx, c, opEachCharge, q)
		if err != nil {
			return err
		}
		for _, r := range p.Charges {
			if err := yield(r); err != nil {
				return err
			}
		}
		if q.After = p.Next; q.After == nil {
			return nil
		}
	}
}

// EachOpenMeter implements ledger.Ledger, one page after the other.
func (c *Client) EachOpenMeter(ctx context.Context, f ledger.UsageFilter, yield func(ledger.Meter) error) error {
	q := meterQuery{Filter: f}
	for {
		ms, err := ask[[]ledger.Meter](ctx, c, opEachOpenMeter, q)
		if err != nil {
			return err
		}
		for _, m := range ms {
			if err := yield(m); err != nil {
				return err
			}
		}
		if len(ms) < page {
			return nil
		}
		q.After = ms[page-1].ID
	}
}

// Held implements ledger.Ledger.
func (c *Client) Held(ctx context.Context, id extensions.ID) ([]ledger.Transfer, error) {
	return ask[[]ledger.Transfer](ctx, c, opHeld, id)
}

// Quote implements ledger.Ledger.
func (c *Client) Quote(ctx context.Context, digest string) (ledger.Quote, error) {
	return ask[ledger.Quote](ctx, c, opQuote, digest)
}

// Lifetimes implements ledger.Ledger.
func (c *Client) Lifetimes(ctx context.Context, account, profile, extension string, newest int) ([]ledger.Lifetime, error) {
	return ask[[]ledger.Lifetime](ctx, c, opLifetimes, lives{account, profile, extension, newest})
}

// Grant implements ledger.Ledger.
func (c *Client) Grant(ctx context.Context, g ledger.Grant) (ledger.Balance, error) {
	return write[ledger.Balance](ctx, c, opGrant, g)
}

// PutBudget implements ledger.Ledger.
func (c *Client) PutBudget(ctx context.Context, b ledger.Budget) (ledger.Budget, error) {
	return write[ledger.Budget](ctx, c, opPutBudget, b)
}

// Balances implements ledger.Ledger.
func (c *Client) Balances(ctx context.Context, org string) ([]ledger.Balance, error) {
	return ask[[]ledger.Balance](ctx, c, opBalances, org)
}

// Budgets implements ledger.Ledger.
func (c *Client) Budgets(ctx context.Context, org string) ([]ledger.Budget, error) {
	return ask[[]ledger.Budget](ctx, c, opBudgets, org)
}

// Paces implements ledger.Ledger.
func (c *Client) Paces(ctx context.Context, q ledger.PaceQuery) ([]ledger.Pace, error) {
	return ask[[]ledger.Pace](ctx, c, opPaces, q)
}

// Events implements ledger.Ledger, one page after the other.
func (c *Client) Events(ctx context.Context, stream string, fromSeq int64, limit int) ([]ledger.Event, error) {
	var out []ledger.Event
	for next := max(fromSeq, 1); next != 0 && (limit <= 0 || len(out) < limit); {
		want := page
		if limit > 0 {
			want = min(page, limit-len(out))
		}
		p, err := ask[eventPage](ctx, c, opEvents, eventQuery{stream, next, want})
		if err != nil {
			return nil, err
		}
		out, next = append(out, p.Events...), p.Next
	}
	return out, nil
}

// Head implements ledger.Ledger.
func (c *Client) Head(ctx context.Context, stream string) (ledger.Head, error) {
	return ask[ledger.Head](ctx, c, opHead, stream)
}

// Outbox implements ledger.Ledger.
func (c *Client) Outbox(ctx context.Context, sink, stream string) (ledger.Outbox, error) {
	return ask[ledger.Outbox](ctx, c, opOutbox, outboxQuery{sink, stream})
}

// MoveOutbox implements ledger.Ledger.
func (c *Client) MoveOutbox(ctx context.Context, step ledger.OutboxStep) (ledger.Outbox, error) {
	return write[ledger.Outbox](ctx, c, opMoveOutbox, step)
}

// Verify implements ledger.Ledger: the server looks.
func (c *Client) Verify(ctx context.Context, pinned ...ledger.Head) (ledger.Report, error) {
	return ask[ledger.Report](ctx, c, opVerify, pinned)
}
