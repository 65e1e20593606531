package meter

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// HostUse is what one sandbox had of a host in a window of time.
type HostUse struct {
	ID       string
	Segments []Segment // within the window
}

// HostShare is what a sandbox bears of the host's cost.
type HostShare struct {
	ID        string `json:"id"`
	Allocated Amount `json:"allocated"` // max(reserved, used) at the host's unit prices
	Borne     Amount `json:"borne"`     // with what falls to it of the idle cost
}

// HostShares is the host's cost of a window: the sum of what is borne and Idle
// is Cost, to the nano-unit. Idle is below zero where more was allocated than
// the host has.
type HostShares struct {
	Currency Currency    `json:"currency"`
	Cost     Amount      `json:"cost"`
	Idle     Amount      `json:"idle"`
	Shares   []HostShare `json:"shares"`
}

// ShareHost shares the cost of a host's window among those who were there, by
// the host's cost.idle: none leaves what nobody was allocated idle; shared
// spreads all of the cost by what each was allocated; dedicated has each bear
// the whole host for its time. KindInvalid where the host's cost or what a
// sandbox reserves is not known, and on overflow.
func ShareHost(h extensions.Host, window time.Duration, uses []HostUse) (HostShares, error) {
	if h.Cost == nil || h.Cost.PerHour == "" {
		return HostShares{}, extensions.Errorf(extensions.KindInvalid, "nobody said what host %s costs", h.Name).WithRemedy("set cost on the host")
	}
	p := pricing{PriceSnapshot: PriceSnapshot{Version: snapshotVersion, Memo: true}}
	if err := p.fromHost(h); err != nil {
		return HostShares{}, err
	}
	perHour, currency, err := hourlyPrice(h.Cost.PerHour)
	if err != nil {
		return HostShares{}, err
	}
	out := HostShares{Currency: currency, Shares: []HostShare{}}
	if out.Cost, err = cost(window.Milliseconds(), perHour, hourMS, halfUp); err != nil {
		return HostShares{}, err
	}
	var sum Amount
	for _, u := range uses {
		lines, err := Charge(u.Segments, p.PriceSnapshot)
		if err != nil {
			return HostShares{}, err
		}
		allocated, known, err := Total(lines)
		if err != nil {
			return HostShares{}, err
		}
		if !known {
			return HostShares{}, extensions.Errorf(extensions.KindInvalid, "which share of host %s sandbox %s has is not known", h.Name, u.ID).
				WithRemedy("give the host cost.cpu and cost.memory_mb, or capacity.max_sandboxes, and the profile resources")
		}
		if sum, err = sum.Add(allocated); err != nil {
			return HostShares{}, err
		}
		out.Shares = append(out.Shares, HostShare{ID: u.ID, Allocated: allocated, Borne: allocated})
	}
	out.Idle = out.Cost - sum
	if h.Cost.Idle == extensions.IdleShared && sum > 0 {
		out.Idle = 0
		return out, apportion(out.Shares, out.Cost, sum)
	}
	return out, nil
}

// apportion divides the whole by what each was allocated of the sum. What rounding
// down leaves goes, a nano-unit each, to those it took the most from.
func apportion(shares []HostShare, whole, sum Amount) error {
	type rest struct {
		of   int
		lost Amount
	}
	left, rests := whole, make([]rest, len(shares))
	for i := range shares {
		down, lost, err := divide(int64(shares[i].Allocated), int64(whole), int64(sum))
		if err != nil {
			return err
		}
		shares[i].Borne, rests[i] = Amount(down), rest{i, Amount(lost)}
		left -= shares[i].Borne
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return cmp.Compare(b.lost, a.lost) })
	for i := range left { // fewer than there are shares
		shares[rests[i].of].Borne++
	}
	return nil
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }
