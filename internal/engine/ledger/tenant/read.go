package tenant

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// HolderAlive implements ledger.Ledger: of the account's own holders, and of
// those who work on what is its.
func (v *view) HolderAlive(ctx context.Context, id ledger.HolderID) (bool, error) {
	if !v.Owns(id) {
		open, err := v.base.OpenIntents(ctx, ledger.IntentFilter{Account: v.Account, Holder: id})
		if err != nil {
			return false, err
		}
		if len(open) == 0 {
			return false, missing("holder", string(id))
		}
	}
	return v.base.HolderAlive(ctx, id)
}

// Get implements ledger.Ledger.
func (v *view) Get(ctx context.Context, id extensions.ID) (ledger.Sandbox, error) {
	s, err := v.base.Get(ctx, id)
	if err == nil && !v.mine(s.Account) {
		return ledger.Sandbox{}, missing("sandbox", string(id))
	}
	return s, err
}

// ByName implements ledger.Ledger.
func (v *view) ByName(ctx context.Context, account, name string) (ledger.Sandbox, error) {
	if !v.mine(account) {
		return ledger.Sandbox{}, missing("live sandbox named", name)
	}
	return v.base.ByName(ctx, account, name)
}

// List implements ledger.Ledger.
func (v *view) List(ctx context.Context, f ledger.Filter) (_ []ledger.Sandbox, err error) {
	var ok bool
	if f.Account, ok = v.narrow(f.Account); !ok {
		return nil, nil
	}
	return v.base.List(ctx, f)
}

// Occupancy implements ledger.Ledger.
func (v *view) Occupancy(ctx context.Context, account string) ([]ledger.Occupied, error) {
	account, ok := v.narrow(account)
	if !ok {
		return nil, nil
	}
	return v.base.Occupancy(ctx, account)
}

// ReadyTimes implements ledger.Ledger.
func (v *view) ReadyTimes(ctx context.Context, account, extension, host string, newest int) ([]ledger.Readiness, error) {
	if !v.mine(account) {
		return nil, nil
	}
	return v.base.ReadyTimes(ctx, account, extension, host, newest)
}

// Lifetimes implements ledger.Ledger.
func (v *view) Lifetimes(ctx context.Context, account, profile, extension string, newest int) ([]ledger.Lifetime, error) {
	if !v.mine(account) {
		return nil, nil
	}
	return v.base.Lifetimes(ctx, account, profile, extension, newest)
}

// OpenIntents implements ledger.Ledger.
func (v *view) OpenIntents(ctx context.Context, f ledger.IntentFilter) (_ []ledger.Intent, err error) {
	var ok bool
	if f.Account, ok = v.narrow(f.Account); !ok {
		return nil, nil
	}
	return v.base.OpenIntents(ctx, f)
}

// Intent implements ledger.Ledger.
func (v *view) Intent(ctx context.Context, key string) (ledger.Intent, error) {
	i, err := v.base.Intent(ctx, key)
	if err == nil && !v.mine(i.Account) {
		return ledger.Intent{}, missing("operation", key)
	}
	return i, err
}

// Host implements ledger.Ledger.
func (v *view) Host(ctx context.Context, account, name string) (ledger.Host, error) {
	if !v.mine(account) {
		return ledger.Host{}, missing("host", name)
	}
	return v.base.Host(ctx, account, name)
}

// Hosts implements ledger.Ledger.
func (v *view) Hosts(ctx context.Context, account string) ([]ledger.Host, error) {
	account, ok := v.narrow(account)
	if !ok {
		return nil, nil
	}
	return v.base.Hosts(ctx, account)
}

// GetSnapshot implements ledger.Ledger.
func (v *view) GetSnapshot(ctx context.Context, id string) (ledger.Snapshot, error) {
	s, err := v.base.GetSnapshot(ctx, id)
	if err == nil && !v.mine(s.Account) {
		return ledger.Snapshot{}, missing("snapshot", id)
	}
	return s, err
}

// Snapshots implements ledger.Ledger.
func (v *view) Snapshots(ctx context.Context, f ledger.SnapshotFilter) (_ []ledger.Snapshot, err error) {
	var ok bool
	if f.Account, ok = v.narrow(f.Account); !ok {
		return nil, nil
	}
	return v.base.Snapshots(ctx, f)
}

// Meters implements ledger.Ledger; a sandbox that is not there has none.
func (v *view) Meters(ctx context.Context, id extensions.ID) ([]ledger.Meter, error) {
	return ofSandbox(ctx, v, id, v.base.Meters)
}

// Charges implements ledger.Ledger.
func (v *view) Charges(ctx context.Context, id extensions.ID) ([]ledger.Charge, error) {
	return ofSandbox(ctx, v, id, v.base.Charges)
}

// Held implements ledger.Ledger.
func (v *view) Held(ctx context.Context, id extensions.ID) ([]ledger.Transfer, error) {
	return ofSandbox(ctx, v, id, v.base.Held)
}

func ofSandbox[T any](ctx context.Context, v *view, id extensions.ID, read func(context.Context, extensions.ID) ([]T, error)) ([]T, error) {
	if _, err := v.Get(ctx, id); extensions.IsKind(err, extensions.KindNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return read(ctx, id)
}

// Usage implements ledger.Ledger.
func (v *view) Usage(ctx context.Context, f ledger.UsageFilter, by ...ledger.Dimension) (_ []ledger.UsageRow, err error) {
	var ok bool
	if f.Account, ok = v.narrow(f.Account); !ok {
		return nil, nil
	}
	return v.base.Usage(ctx, f, by...)
}

// EachCharge implements ledger.Ledger.
func (v *view) EachCharge(ctx context.Context, f ledger.UsageFilter, yield func(ledger.ChargeRow) error) (err error) {
	var ok bool
	if f.Account, ok = v.narrow(f.Account); !ok {
		return nil
	}
	return v.base.EachCharge(ctx, f, yield)
}

// EachOpenMeter implements ledger.Ledger.
func (v *view) EachOpenMeter(ctx context.Context, f ledger.UsageFilter, yield func(ledger.Meter) error) (err error) {
	var ok bool
	if f.Account, ok = v.narrow(f.Account); !ok {
		return nil
	}
	return v.base.EachOpenMeter(ctx, f, yield)
}

// Quote implements ledger.Ledger. A quote is of no account: who knows its
// digest has its content.
func (v *view) Quote(ctx context.Context, digest string) (ledger.Quote, error) {
	return v.base.Quote(ctx, digest)
}

// Balances implements ledger.Ledger: the org's, which its workspaces share.
func (v *view) Balances(ctx context.Context, org string) ([]ledger.Balance, error) {
	if org != v.org {
		return nil, nil
	}
	return v.base.Balances(ctx, org)
}

// Paces implements ledger.Ledger: of the owner's ceilings too.
func (v *view) Paces(ctx context.Context, q ledger.PaceQuery) ([]ledger.Pace, error) {
	if !v.mine(q.Account) {
		return nil, v.notYours(q.Account)
	}
	if err := v.ceilings(q.Ceilings); err != nil {
		return nil, err
	}
	q.Ceilings = v.withCeilings(q.Account, q.Metered, q.Ceilings)
	return v.base.Paces(ctx, q)
}

// Budgets implements ledger.Ledger: the org's and the account's own.
func (v *view) Budgets(ctx context.Context, org string) ([]ledger.Budget, error) {
	if org != v.org {
		return nil, nil
	}
	bs, err := v.base.Budgets(ctx, org)
	return slices.DeleteFunc(bs, func(b ledger.Budget) bool { return !v.shared(b.Account) }), err
}

// eventBatch is how many events are looked through at a time.
const eventBatch = 500

// Events implements ledger.Ledger: those of the org and of the account.
func (v *view) Events(ctx context.Context, stream string, fromSeq int64, limit int) ([]ledger.Event, error) {
	if stream != v.org {
		return nil, nil
	}
	if v.Account == v.org {
		return v.base.Events(ctx, stream, fromSeq, limit)
	}
	var out []ledger.Event
	for {
		batch, err := v.base.Events(ctx, stream, fromSeq, eventBatch)
		if err != nil {
			return nil, err
		}
		for _, e := range batch {
			var body struct{ Data struct{ Account string } }
			if err := json.Unmarshal(e.CloudEvent, &body); err != nil {
				return nil, failure(extensions.KindInternal, "event %s/%d is not JSON: %w", e.Stream, e.Seq, err)
			}
			if v.shared(body.Data.Account) {
				out = append(out, e)
			}
			if limit > 0 && len(out) == limit {
				return out, nil
			}
			fromSeq = e.Seq + 1
		}
		if len(batch) < eventBatch {
			return out, nil
		}
	}
}

// Head implements ledger.Ledger. It is a hash, and what receipts pin.
func (v *view) Head(ctx context.Context, stream string) (ledger.Head, error) {
	if stream != v.org {
		return ledger.Head{Ledger: v.ID(), Stream: stream}, nil
	}
	return v.base.Head(ctx, stream)
}

// Outbox implements ledger.Ledger.
func (v *view) Outbox(context.Context, string, string) (ledger.Outbox, error) {
	return ledger.Outbox{}, v.owners("export events")
}

// MoveOutbox implements ledger.Ledger.
func (v *view) MoveOutbox(context.Context, ledger.OutboxStep) (ledger.Outbox, error) {
	return ledger.Outbox{}, v.owners("export events")
}
