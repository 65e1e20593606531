package route

import (
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// rank returns a name's position in an ordering list; unlisted names come last.
func rank(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 && name != "" {
		return i
	}
	return len(list)
}

// criterion orders candidates by ascending keys; equal ones go to the next criterion. Without a key, all are equal.
type criterion struct {
	why string
	key func(c *Candidate) int64
}

func listed(why string, list []string, name func(*Candidate) string) criterion {
	if len(list) == 0 {
		return criterion{}
	}
	return criterion{why, func(c *Candidate) int64 { return int64(rank(list, name(c))) }}
}

// criteria are the strategy's, most important first; names decide ties.
func (j *judge) criteria(eligible []*Candidate) []criterion {
	pins := listed("the profile lists it first", j.bindings, func(c *Candidate) string { return c.Binding })
	where := listed("its placement lists its host first", slices.Concat(j.prefer(), j.placementFallback()), (*Candidate).HostName)
	if len(j.Hosts) > 0 {
		where = listed("the request lists its host first", j.Hosts, (*Candidate).HostName)
	}
	own := criterion{"self-hosted comes before metered", func(c *Candidate) int64 {
		if c.Capabilities.SelfHosted() {
			return 0
		}
		return 1
	}}
	priority := criterion{"its priority is higher", func(c *Candidate) int64 { return -c.priority() }}
	bounded := criterion{"its capacity is known", (*Candidate).bounded}
	holds := criterion{}
	if j.Origin != nil {
		holds = criterion{"it holds what the sandbox starts from", func(c *Candidate) int64 {
			if j.Origin.Holds(c) {
				return 0
			}
			return 1
		}}
	}
	switch j.strategy {
	case StrategyExplicit:
		return []criterion{pins, holds, where, {"the catalog lists it first", func(c *Candidate) int64 { return int64(c.Index) }}}
	case StrategyLowestCost:
		return []criterion{pins, holds, j.cheapest(eligible), own, where, priority, bounded}
	case StrategyLowestLatency:
		return []criterion{pins, holds, fastest(eligible), own, where, priority, bounded}
	}
	return []criterion{pins, holds, own, where, priority, bounded}
}

// priority is the host's plus the binding's, within 64 bits.
func (c *Candidate) priority() int64 {
	const bound = 1 << 31
	p := min(max(c.Priority, -bound), bound)
	if c.Host != nil {
		p += min(max(c.Host.Priority, -bound), bound)
	}
	return p
}

// cheapest orders by the hourly price, unknown ones last. Prices in a currency other than the usual one count as unknown,
// with a notice.
func (j *judge) cheapest(eligible []*Candidate) criterion {
	currency := j.currency(eligible)
	unknown := int64(0) // one above the highest price, so that keys stay small
	for _, c := range eligible {
		switch p := c.counted(); {
		case p == nil:
		case p.Currency != currency:
			j.notices[c.ID()+" is priced in "+string(p.Currency)+", which cannot be compared with "+string(currency)] = true
		default:
			unknown = max(unknown, int64(p.Amount)+1)
		}
	}
	return criterion{"its hourly price is the lowest", func(c *Candidate) int64 {
		if p := c.counted(); p != nil && p.Currency == currency {
			return int64(p.Amount)
		}
		return unknown
	}}
}

// fastest orders by the time until ready, unknown ones last.
func fastest(eligible []*Candidate) criterion {
	unknown := int64(0)
	for _, c := range eligible {
		unknown = max(unknown, int64(c.Latency.CreateToReady)+1)
	}
	return criterion{"it is expected to be ready first", func(c *Candidate) int64 {
		if l := c.Latency.CreateToReady; l > 0 {
			return int64(l)
		}
		return unknown
	}}
}

// noteOrder adds notices about estimated figures that decided the order.
func (j *judge) noteOrder(order []*Candidate) {
	if len(order) < 2 {
		return
	}
	for _, c := range order {
		switch l := c.Latency; {
		case j.strategy == StrategyLowestCost && c.counted() != c.Price.Hourly:
			j.notice("%s counts at a shadow price of %s an hour, which is never charged", c.ID(), c.Price.Shadow)
		case j.strategy != StrategyLowestLatency:
		case l.CreateToReady <= 0:
			j.notice("the time %s takes to get ready is unknown, so it comes last", c.ID())
		case l.Samples > 0:
			j.notice("%s took %s to get ready, the median of %d", c.ID(), l.CreateToReady.Round(time.Millisecond), l.Samples)
		default:
			j.notice("%s takes %s to get ready, according to the catalog", c.ID(), l.CreateToReady.Round(time.Millisecond))
		}
	}
}

// currency returns the currency to compare in: the limit's, else the most frequent one.
func (j *judge) currency(eligible []*Candidate) meter.Currency {
	if limit := j.Policy.MaxCostPerHour; limit != nil {
		return limit.Currency
	}
	count := map[meter.Currency]int{}
	var best meter.Currency
	for i := 0; i < len(eligible); { // run by run: usually there is one currency
		p := eligible[i].counted()
		n := 1
		for i+n < len(eligible) && p != nil && eligible[i+n].counted() != nil && eligible[i+n].counted().Currency == p.Currency {
			n++
		}
		if p != nil {
			count[p.Currency] += n
		}
		i += n
	}
	for currency, n := range count {
		if n > count[best] || n == count[best] && currency < best {
			best = currency
		}
	}
	return best
}

// order returns a permutation of eligible, best first, and why the first is.
func (j *judge) order(eligible []*Candidate) (ordered []*Candidate, why string) {
	if len(eligible) < 2 {
		return eligible, "it is the only place that can run it"
	}
	s := newSorting(eligible, j.criteria(eligible))
	s.sort()
	ordered = make([]*Candidate, len(eligible))
	for i := range s.rows {
		ordered[i] = eligible[s.rows[i].at]
	}
	return j.listedNext(ordered), s.why()
}

// orderedFallback reports whether the profile has a fallback list and no pin: the list then says what may follow the first
// choice.
func (j *judge) orderedFallback() bool { return len(j.bindings) == 0 && len(j.Policy.Fallback) > 0 }

// listedNext moves the places of the fallback list behind the first choice, in the list's order.
func (j *judge) listedNext(order []*Candidate) []*Candidate {
	if !j.orderedFallback() {
		return order
	}
	listed := make([][]*Candidate, len(j.Policy.Fallback)+1)
	for _, c := range order[1:] {
		at := rank(j.Policy.Fallback, c.Binding)
		listed[at] = append(listed[at], c)
	}
	return slices.Concat(append([][]*Candidate{order[:1]}, listed...)...)
}

func (j *judge) fallbacks(order []*Candidate) []*Candidate {
	rest := order[1:]
	if !j.orderedFallback() {
		return slices.Clip(rest)
	}
	n := 0
	for n < len(rest) && slices.Contains(j.Policy.Fallback, rest[n].Binding) {
		n++
	}
	return slices.Clip(rest[:n])
}
