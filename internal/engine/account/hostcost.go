package account

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// HostCost is a host's cost to its owner in a period, by consumer. Cost is the sum of the sandboxes' shares and
// Idle. Amounts are decimal strings; no wallet pays them.
type HostCost struct {
	Host     string          `json:"host"`
	From     time.Time       `json:"from"`
	To       time.Time       `json:"to"`
	Sharing  string          `json:"sharing"` // none | shared | dedicated: who bears idle cost
	Currency string          `json:"currency"`
	Cost     string          `json:"cost"`
	Idle     string          `json:"idle"` // negative if more was reserved than the host has
	Shares   []HostCostShare `json:"shares"`
}

// HostCostShare is one sandbox's part.
type HostCostShare struct {
	ID        extensions.ID `json:"id"`
	Name      string        `json:"name"`
	Profile   string        `json:"profile"`
	Time      time.Duration `json:"-"` // within the period, running or paused
	Seconds   float64       `json:"seconds"`
	Allocated string        `json:"allocated"` // by what was reserved
	Borne     string        `json:"borne"`     // with its part of the idle cost
}

// HostCost divides the cost of a host of the account between from and to among the sandboxes that the
// ledger metered there. It reads only the ledger.
func (a *Account) HostCost(ctx context.Context, h extensions.Host, from, to time.Time) (HostCost, error) {
	if !from.Before(to) {
		return HostCost{}, extensions.Invalid("the period from %s to %s is empty", "set a start before the end", from.Format(time.RFC3339),
			to.Format(time.RFC3339))
	}
	uses, shares, err := a.usesOf(ctx, h.Name, from, to)
	if err != nil {
		return HostCost{}, err
	}
	out := HostCost{Host: h.Name, From: from, To: to, Sharing: extensions.IdleNone, Shares: shares}
	if h.Cost != nil && h.Cost.Idle != "" {
		out.Sharing = h.Cost.Idle
	}
	bill, err := meter.ShareHost(h, to.Sub(from), uses)
	if err != nil {
		return HostCost{}, err
	}
	out.Currency, out.Cost, out.Idle = string(bill.Currency), bill.Cost.String(), bill.Idle.String()
	for i, s := range bill.Shares {
		out.Shares[i].Allocated, out.Shares[i].Borne = s.Allocated.String(), s.Borne.String()
	}
	return out, nil
}

// usesOf collects what was metered on the host between from and to.
func (a *Account) usesOf(ctx context.Context, host string, from, to time.Time) ([]meter.HostUse, []HostCostShare, error) {
	l, err := a.books.Reader(ctx)
	if err != nil {
		return nil, nil, err
	}
	f := ledger.UsageFilter{From: from, Account: a.name, Host: host}
	ended, err := l.Usage(ctx, f, ledger.BySandbox)
	if err != nil {
		return nil, nil, err
	}
	ids, seen := []extensions.ID{}, map[extensions.ID]bool{}
	add := func(id extensions.ID) {
		if !seen[id] {
			seen[id], ids = true, append(ids, id)
		}
	}
	for _, row := range ended {
		add(row.SandboxID)
	}
	if err := l.EachOpenMeter(ctx, f, func(m ledger.Meter) error { add(m.SandboxID); return nil }); err != nil {
		return nil, nil, err
	}
	uses, shares := []meter.HostUse{}, []HostCostShare{}
	for _, id := range ids {
		meters, err := l.Meters(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		use, share := meter.HostUse{ID: string(id)}, HostCostShare{ID: id}
		for _, m := range meters {
			if m.For.Host == host {
				use.Segments = append(use.Segments, within(m, from, to)...)
				share.Name, share.Profile = m.For.Name, m.For.Profile
			}
		}
		for _, s := range use.Segments {
			share.Time += time.Duration(s.Milliseconds) * time.Millisecond
		}
		if share.Time == 0 {
			continue
		}
		share.Seconds = share.Time.Seconds()
		uses, shares = append(uses, use), append(shares, share)
	}
	return uses, shares, nil
}

// within cuts a meter's segments to a period.
func within(m ledger.Meter, from, to time.Time) []meter.Segment {
	var out []meter.Segment
	for _, s := range m.Segments {
		start, end := s.StartedAt, s.EndedAt
		if end.IsZero() {
			if end = m.ClosedAt; end.IsZero() {
				end = to
			}
		}
		if start.Before(from) {
			start = from
		}
		if end.After(to) {
			end = to
		}
		if ms := end.UnixMilli() - start.UnixMilli(); ms > 0 {
			out = append(out, meter.Segment{Mode: s.Mode, Milliseconds: ms, Sizes: meter.SizesFromMap(s.Sizes)})
		}
	}
	return out
}
