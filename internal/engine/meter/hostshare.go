package meter

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// HostUse is what one sandbox used of a host in a window of time.
type HostUse struct {
	ID       string
	Segments []Segment // within the window
}

// HostShare is what a sandbox bears of the host's cost.
type HostShare struct {
	ID        string `json:"id"`
	Allocated Amount `json:"allocated"` // max(reserved, used) at the host's unit prices
	Borne     Amount `json:"borne"`     // Allocated plus its part of the idle cost
}

// HostShares is the host's cost in a window. All Borne plus Idle is Cost, to the nano-unit. Idle is
// negative if more was allocated than the host has.
type HostShares struct {
	Currency Currency    `json:"currency"`
	Cost     Amount      `json:"cost"`
	Idle     Amount      `json:"idle"`
	Shares   []HostShare `json:"shares"`
}

// ShareHost divides the cost of a host's window among the sandboxes on it, according to the host's
// cost.idle: none leaves unallocated cost idle; shared spreads the whole cost in proportion to what each
// was allocated; dedicated charges each the whole host for its time. KindInvalid if the host's cost or a
// sandbox's reservation is unknown, and on overflow.
func ShareHost(h extensions.Host, window time.Duration, uses []HostUse) (HostShares, error) {
	if h.Cost == nil || h.Cost.PerHour == "" {
		return HostShares{}, extensions.Errorf(extensions.KindInvalid, "host %s has no cost", h.Name).WithRemedy("set cost on the host")
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
			return HostShares{}, extensions.Errorf(extensions.KindInvalid, "the share of sandbox %s in host %s is unknown", u.ID, h.Name).
				WithRemedy("set cost.cpu and cost.memory_mb, or capacity.max_sandboxes, on the host, and resources in the profile")
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

// apportion divides whole in proportion to what each was allocated of sum. The remainder of rounding down
// goes, one nano-unit each, to those that lost the most.
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
