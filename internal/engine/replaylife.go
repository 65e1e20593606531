package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
)

// lifeOf tells what s has of a row as the steps that lead to where it is. Each
// of its lives keeps its own meter, times, attribution and charges.
func (e *Engine) lifeOf(ctx context.Context, l, s ledger.Ledger, row ledger.Sandbox) (*ledger.Begin, []ledger.Change, error) {
	meters, err := s.Meters(ctx, row.ID)
	if err != nil || len(meters) == 0 && lifecycle.Terminal(row.State) {
		return nil, nil, err
	}
	holder, err := l.Holder(ctx)
	if err != nil {
		return nil, nil, err
	}
	key := spoolKey(s.ID(), row.ID)
	b := &ledger.Begin{Key: key, Holder: holder, ID: row.ID, Account: row.Account, Name: row.Name, Generation: row.Generation, Unclaimed: !row.ClaimsName,
		Profile: row.Profile, ProfileVersion: row.ProfileVersion, SpecHash: row.SpecHash, Request: row.Request, Spec: row.Spec, Route: row.Route,
		TTL: row.TTL, MaxTTL: row.MaxTTL, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
		Event: note("sandbox.requested", map[string]any{"spool": s.ID(), "name": row.Name})}
	if row.QuoteDigest != "" {
		q, err := s.Quote(ctx, row.QuoteDigest)
		if err != nil {
			return nil, nil, err
		}
		b.Quote = &q
	}
	w := &walk{row: row, key: key, generation: row.Generation, charges: map[string][]ledger.Charge{}}
	if len(meters) == 0 { // it never was ready, and something may be left of it
		w.to(lifecycle.Provisioning, ledger.Change{Patch: w.asItIs()})
		w.to(lifecycle.Failed, ledger.Change{Patch: ledger.Patch{Reason: &row.Reason}, Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: row.Reason}})
		return b, w.steps, nil
	}
	charges, err := s.Charges(ctx, row.ID)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range charges {
		w.charges[c.MeterID] = append(w.charges[c.MeterID], c)
	}
	b.Generation = meters[0].Generation
	w.lives(b.Generation, meters)
	w.rest(holder, meters[len(meters)-1])
	if !lifecycle.Terminal(row.State) {
		if w.steps[len(w.steps)-1].Reserve, err = setAside(ctx, s, row); err != nil {
			return nil, nil, err
		}
	}
	return b, w.steps, nil
}

// setAside is what s holds for a row, be it nothing, to be held elsewhere.
func setAside(ctx context.Context, s ledger.Ledger, row ledger.Sandbox) (*ledger.Reserve, error) {
	held, err := s.Held(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	r := &ledger.Reserve{Memo: ledger.AccountInfra, Total: true, TTL: row.TTL}
	for _, x := range held {
		r.Currency = x.Currency()
		r.Amount += x.Amount
	}
	return r, nil
}

// walk collects the steps that lead to where a row is.
type walk struct {
	row        ledger.Sandbox
	key        string
	generation int64                      // after the steps so far
	charges    map[string][]ledger.Charge // by meter
	steps      []ledger.Change
}

func (w *walk) to(state lifecycle.State, c ledger.Change) {
	c.ID, c.Key, c.To = w.row.ID, fmt.Sprintf("%s/%d", w.key, len(w.steps)+1), state
	if c.NextGeneration {
		w.generation++
	}
	w.steps = append(w.steps, c)
}

// lives tells every meter, each in its generation, until the last one runs. A
// sandbox that is made again is told without the state in between, which would
// claim its name anew.
func (w *walk) lives(first int64, meters []ledger.Meter) {
	w.generation = first
	for i, m := range meters {
		open := &ledger.MeterOpen{At: m.OpenedAt, Source: m.StartSource, Currency: m.Currency, Rates: m.Rates}
		for n, seg := range m.Segments {
			switch {
			case n > 0:
				w.to("", ledger.Change{Meter: ledger.MeterOps{Switch: &ledger.MeterSwitch{At: seg.StartedAt, Mode: seg.Mode, Sizes: seg.Sizes}}})
			case i == 0:
				w.to(lifecycle.Provisioning, ledger.Change{Patch: w.asItWas(m)})
				open.Mode, open.Sizes = seg.Mode, seg.Sizes
				w.to(lifecycle.Ready, ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Meter: ledger.MeterOps{Open: open},
					Patch: ledger.Patch{ReadyAt: &w.row.ReadyAt, SeenAliveAt: &w.row.SeenAliveAt, Reachability: &w.row.Reachability, Mode: &w.row.Mode}})
			default:
				w.until(m.Generation - 1)
				open.Mode, open.Sizes = seg.Mode, seg.Sizes
				w.to("", ledger.Change{NextGeneration: true, Patch: w.asItWas(m), Event: note("sandbox.recreating", nil),
					Meter: ledger.MeterOps{Close: w.ended(meters[i-1]), Open: open}})
			}
		}
	}
}

// until tells of generations without a meter of their own: of what was adopted
// while its meter ran, or did not come to run.
func (w *walk) until(generation int64) {
	for w.generation < generation {
		w.to("", ledger.Change{NextGeneration: true})
	}
}

// rest leads from the last life to how the row is now.
func (w *walk) rest(holder ledger.HolderID, last ledger.Meter) {
	row := w.row
	w.until(row.Generation)
	if last.For != w.attribution() {
		p := w.asItIs()
		p.Profile, p.Version, p.Request = &row.Profile, &row.ProfileVersion, row.Request
		w.to("", ledger.Change{Patch: p})
	}
	var end *ledger.MeterClose
	if !last.Open() {
		end = w.ended(last)
	}
	switch {
	case lifecycle.Terminal(row.State):
		w.to(lifecycle.Destroying, ledger.Change{Intent: &ledger.OpenIntent{Key: w.key + "/destroy", Kind: ledger.IntentDestroy, Holder: holder}})
		w.to(lifecycle.Destroyed, ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Meter: ledger.MeterOps{Close: end},
			Patch: ledger.Patch{EndedAt: &row.EndedAt, EndReason: &row.EndReason, EndEstimated: &row.EndEstimated, Reason: &row.Reason}})
	case row.State != lifecycle.Ready:
		w.to(row.State, ledger.Change{Patch: ledger.Patch{Reason: &row.Reason}, Meter: ledger.MeterOps{Close: end}})
	}
}

// ended closes a meter as it was closed, with the charges that it had.
func (w *walk) ended(m ledger.Meter) *ledger.MeterClose {
	return &ledger.MeterClose{At: m.ClosedAt, Source: m.EndSource, Estimated: m.EndEstimated, Booked: &ledger.Booked{Charges: w.charges[m.ID]}}
}

// asItIs is the row's place and what is there.
func (w *walk) asItIs() ledger.Patch {
	r := w.row
	return ledger.Patch{Extension: &r.Extension, Host: &r.Host, HostRef: &r.HostRef, Handle: &r.Handle, WorkspaceBase: r.WorkspaceBase}
}

// asItWas is for whom and where a meter began to run: a ledger reads that from
// the row.
func (w *walk) asItWas(m ledger.Meter) ledger.Patch {
	p, f := w.asItIs(), m.For
	if f == w.attribution() {
		p.Profile, p.Version, p.Request = &w.row.Profile, &w.row.ProfileVersion, w.row.Request // after lives that were others'
		return p
	}
	p.Extension, p.Host, p.Profile, p.Version = &f.Extension, &f.Host, &f.Profile, &f.ProfileVersion
	var request map[string]json.RawMessage
	if json.Unmarshal(w.row.Request, &request) == nil && request != nil {
		request["consumer"] = mustJSON(Consumer{Actor: f.Actor, Harness: f.Harness, RunID: f.RunID})
		p.Request = mustJSON(request)
	}
	return p
}

// attribution is for whom and where the row says that it runs.
func (w *walk) attribution() ledger.Attribution {
	r := w.row
	a := ledger.Attribution{Account: r.Account, Name: r.Name, Profile: r.Profile, ProfileVersion: r.ProfileVersion, Extension: r.Extension, Host: r.Host}
	if req, err := requestOf(r); err == nil {
		a.Actor, a.Harness, a.RunID = req.Consumer.Actor, req.Consumer.Harness, req.Consumer.RunID
	}
	return a
}
