package engine

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const receiptVersion = 1

// ReceiptKey is where a resource's private state keeps its [Receipt].
const ReceiptKey = "receipt"

// view shows a row. It is what the ledger knows, not what is so now.
func (e *Engine) view(row ledger.Sandbox) Sandbox {
	s := Sandbox{
		ID: row.ID, Account: row.Account, Name: row.Name, Profile: row.Profile, Version: row.ProfileVersion,
		State: lifecycle.Shown(row.State), Mode: string(row.Mode), Extension: row.Extension, Host: row.HostRef, HostName: row.Host,
		Handle: row.Handle.Encode(), Reach: row.Reachability, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt, EndedAt: row.EndedAt, EndEstimated: row.EndEstimated,
		Generation: row.Generation, Reason: row.Reason,
	}
	if row.State == lifecycle.Destroyed && row.EndReason != "" {
		s.Reason = row.EndReason
	}
	if b, err := e.catalog.Named(row.Extension); err == nil {
		s.Expiry = string(b.Capabilities.Expiry)
	}
	_ = json.Unmarshal(row.Route, &s.Route) // shown as far as it can be read
	if req, err := requestOf(row); err == nil {
		s.Request = req
	}
	s.Receipt = e.receipt(row)
	return s
}

func requestOf(row ledger.Sandbox) (Request, error) {
	var req Request
	err := json.Unmarshal(row.Request, &req)
	return req, err
}

func (e *Engine) receipt(row ledger.Sandbox) Receipt {
	spec := specOf(row)
	in := insideOf(spec)
	return Receipt{
		Version: receiptVersion, ID: row.ID, Account: row.Account, Name: row.Name, Extension: row.Extension, Host: row.HostRef,
		Handle: row.Handle.Encode(), Generation: row.Generation, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
		StartedAt: row.ReadyAt, SpecHash: row.SpecHash, Mode: string(row.Mode), Mirror: e.mirrorOf(row), PreRelease: spec.Toolchain.PreRelease,
		EnvInside: in.env, EnvService: in.service,
	}
}

// sealed is the view of a row after a change, with the whole receipt.
func (e *Engine) sealed(ctx context.Context, l ledger.Ledger, row ledger.Sandbox) Sandbox {
	s := e.view(row)
	s.Receipt = e.fullReceipt(ctx, l, row)
	return s
}

// fullReceipt adds what another machine needs to settle: when billing began,
// the prices, and the ledger with its chain's head at this moment. It is
// written when a sandbox is made or changed; reading keeps what was written,
// so that a state does not change by itself.
func (e *Engine) fullReceipt(ctx context.Context, l ledger.Ledger, row ledger.Sandbox) Receipt {
	ctx = context.WithoutCancel(ctx)
	r := e.receipt(row)
	r.Ledger = l.ID()
	if meters, err := l.Meters(ctx, row.ID); err == nil && len(meters) > 0 {
		last := meters[len(meters)-1]
		r.StartedAt = last.OpenedAt
		if p, err := meter.DecodePriceSnapshot(string(last.Rates)); err == nil {
			r.Prices = p.Encode()
		}
	}
	if h, err := l.Head(ctx, row.Stream()); err == nil && h.Seq > 0 {
		r.Head = h.Pin()
	}
	return r
}

// keepReceipt is the receipt of a reading: the row's facts, and of what only
// a change writes what the state has.
func keepReceipt(now, had Receipt) Receipt {
	now.StartedAt, now.Prices, now.Ledger, now.Head = had.StartedAt, had.Prices, had.Ledger, had.Head
	return now
}

// rowOf is what a receipt says in the ledger's terms, for sandboxes that are
// in another machine's ledger.
func rowOf(rec Receipt) ledger.Sandbox {
	row := ledger.Sandbox{
		ID: rec.ID, Account: rec.Account, Name: rec.Name, Extension: rec.Extension, HostRef: rec.Host, Generation: rec.Generation,
		CreatedAt: rec.CreatedAt, ExpiresAt: rec.ExpiresAt, ReadyAt: rec.StartedAt, SpecHash: rec.SpecHash, Mode: ledger.Mode(rec.Mode),
		State: lifecycle.Ready,
	}
	if h, err := extensions.DecodeHandle(rec.Handle); err == nil {
		row.Handle = h
	}
	if rec.Host != "" {
		if h, err := extensions.ParseHostRef(rec.Host); err == nil {
			row.Host = h.Name
		}
	}
	return row
}

// specOf is the resolved request of a row; empty where there is none.
func specOf(row ledger.Sandbox) (spec extensions.Spec) {
	_ = json.Unmarshal(row.Spec, &spec) // one made elsewhere has none here
	return spec
}

// quantity is what was counted and in which quanta: a price is for a whole
// unit, what is counted is not.
func quantity(c ledger.Charge) (counted, quantum string) {
	return strconv.FormatInt(c.Quantity, 10), meter.QuantumOf(c.Unit)
}
