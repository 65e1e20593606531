package life

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// view shows a row: what the ledger knows, which may be out of date.
func (m *Manager) view(row ledger.Sandbox) Sandbox {
	state := lifecycle.Shown(row.State)
	s := Sandbox{
		ID: row.ID, Account: row.Account, Name: row.Name, Profile: row.Profile, Version: row.ProfileVersion,
		State: state, Mode: shownMode(state, string(row.Mode)), Extension: row.Extension, Host: row.HostRef, HostName: row.Host,
		Handle: row.Handle.Encode(), Reach: row.Reachability, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt, EndedAt: row.EndedAt,
		EndEstimated: row.EndEstimated,
		Generation:   row.Generation, Reason: row.Reason,
	}
	if row.State == lifecycle.Destroyed && row.EndReason != "" {
		s.Reason = row.EndReason
	}
	s.IdleReap = time.Duration(specOf(row).IdleReap)
	s.Expiry = m.expiry(row.Extension, row.Mode)
	_ = json.Unmarshal(row.Route, &s.Route) // shown as far as it can be read
	if req, err := requestOf(row); err == nil {
		s.Request = req
	}
	s.Receipt = m.receipt(row)
	return s
}

func requestOf(row ledger.Sandbox) (plan.Request, error) {
	var req plan.Request
	err := json.Unmarshal(row.Request, &req)
	return req, err
}

func (m *Manager) receipt(row ledger.Sandbox) plan.Receipt {
	spec := specOf(row)
	in := insideOf(spec)
	return plan.Receipt{
		Version: plan.ReceiptVersion, ID: row.ID, Account: row.Account, Name: row.Name, Extension: row.Extension, Host: row.HostRef,
		Identity: row.Identity, Handle: row.Handle.Encode(), Generation: row.Generation, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
		StartedAt: row.ReadyAt, Mirror: m.mirrorOf(row), PreRelease: spec.Toolchain.PreRelease,
		EnvInside: in.env, EnvService: in.service,
	}
}

// sealed returns the view of a row after a change, with the complete receipt.
func (m *Manager) sealed(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) Sandbox {
	s := m.view(row)
	s.Receipt = m.fullReceipt(ctx, l, row)
	return s
}

// fullReceipt adds what another machine needs to settle: when billing began, the prices, and the ledger
// with its current chain head. It is written when a sandbox is made or changed; a read keeps what was
// written, so that a state does not change by itself.
func (m *Manager) fullReceipt(ctx context.Context, l *ledger.Ledger, row ledger.Sandbox) plan.Receipt {
	ctx = context.WithoutCancel(ctx)
	r := m.receipt(row)
	r.Ledger = l.ID()
	if meters, err := l.Meters(ctx, row.ID); err == nil && len(meters) > 0 {
		last := meters[len(meters)-1]
		r.StartedAt = last.OpenedAt
		if p, err := meter.DecodePriceSnapshot(string(last.Rates)); err == nil {
			r.Prices = p.Line()
		}
	}
	if h, err := l.Head(ctx, row.Stream()); err == nil && h.Seq > 0 {
		r.Head = h.Pin()
	}
	return r
}

// keepReceipt returns the receipt of a read: the row's facts, and what only changes write, from the state.
func keepReceipt(now, had plan.Receipt) plan.Receipt {
	now.StartedAt, now.Prices, now.Ledger, now.Head = had.StartedAt, had.Prices, had.Ledger, had.Head
	return now
}

// rowOf turns a receipt into a row, for sandboxes in another machine's ledger.
func rowOf(rec plan.Receipt) ledger.Sandbox {
	row := ledger.Sandbox{
		ID: rec.ID, Account: rec.Account, Name: rec.Name, Extension: rec.Extension, HostRef: rec.Host, Identity: rec.Identity,
		Generation: rec.Generation,
		CreatedAt:  rec.CreatedAt, ExpiresAt: rec.ExpiresAt, ReadyAt: rec.StartedAt, State: lifecycle.Ready,
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

// specOf returns the resolved request of a row; empty if there is none.
func specOf(row ledger.Sandbox) (spec extensions.Spec) {
	_ = json.Unmarshal(row.Spec, &spec) // one made elsewhere has none here
	return spec
}

// madeAs reports that a sandbox was made as a request asks. was is the request it was made for. The snapshot that their
// profile names is its history: its name may mean another one now, or none.
func madeAs(row ledger.Sandbox, was plan.Request, asked *plan.Asked) bool {
	spec := asked.SpecAt(row.Extension)
	if was.FromSnapshot == "" && asked.Request.FromSnapshot == "" {
		spec.FromSnapshot = specOf(row).FromSnapshot
	}
	return spec.Hash() == row.SpecHash
}

// quantity returns the count and its unit. A price is for a whole unit; the count is in smaller quanta.
func quantity(c ledger.Charge) (counted, quantum string) {
	return strconv.FormatInt(c.Quantity, 10), meter.QuantumOf(c.Unit)
}

// Charges returns a sandbox's settled charges.
func (m *Manager) Charges(ctx context.Context, id extensions.ID) ([]Charge, error) {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	cs, err := l.Charges(ctx, id)
	return chargesOf(cs), err
}
