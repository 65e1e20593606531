package route

import (
	"cmp"
	"math"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// place of something in a list that orders; unlisted comes last.
const unlisted = math.MaxInt32

func rank(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 && name != "" {
		return i
	}
	return unlisted
}

// criterion is one way to put candidates in order; equal ones go to the next.
type criterion struct {
	why string
	key func(c *Candidate) int64
}

// criteria are the strategy's, most important first; ids break what is left.
func (j *judge) criteria(eligible []*Candidate) []criterion {
	pins := criterion{"the profile lists it first", func(c *Candidate) int64 { return int64(rank(j.bindings, c.Binding)) }}
	placement := slices.Concat(j.prefer(), j.placementFallback())
	where := criterion{"its placement lists its host first", func(c *Candidate) int64 { return int64(rank(placement, c.HostName())) }}
	if len(j.Hosts) > 0 {
		where = criterion{"the request lists its host first", func(c *Candidate) int64 { return int64(rank(j.Hosts, c.HostName())) }}
	}
	own := criterion{"self-hosted comes before metered", func(c *Candidate) int64 {
		if c.selfHosted() {
			return 0
		}
		return 1
	}}
	priority := criterion{"its priority is higher", func(c *Candidate) int64 { return -c.priority() }}
	switch j.strategy {
	case StrategyExplicit:
		return []criterion{pins, where, {"the catalog lists it first", func(c *Candidate) int64 { return int64(c.Index) }}}
	case StrategyLowestCost:
		return []criterion{pins, j.cheapest(eligible), own, where, priority}
	}
	return []criterion{pins, own, where, priority}
}

// priority adds the host's to the binding's, within 64 bits.
func (c *Candidate) priority() int64 {
	const bound = math.MaxInt32
	p := min(max(c.Priority, -bound), bound)
	if c.Host != nil {
		p += min(max(c.Host.Priority, -bound), bound)
	}
	return p
}

// cheapest orders by the hourly price; an unknown one comes after every known
// one. Prices in another currency than most count as unknown, with a notice.
func (j *judge) cheapest(eligible []*Candidate) criterion {
	currency := j.currency(eligible)
	for _, c := range eligible {
		if p := c.Price.Hourly; p != nil && p.Currency != currency {
			j.notices[c.ID()+" is priced in "+string(p.Currency)+", which cannot be compared with "+string(currency)] = true
		}
	}
	return criterion{"its hourly price is the lowest", func(c *Candidate) int64 {
		if p := c.Price.Hourly; p != nil && p.Currency == currency {
			return int64(p.Amount)
		}
		return math.MaxInt64
	}}
}

// currency to compare in: the limit's, else the most frequent one.
func (j *judge) currency(eligible []*Candidate) meter.Currency {
	if limit := j.Policy.MaxCostPerHour; limit != nil {
		return limit.Currency
	}
	count := map[meter.Currency]int{}
	var best meter.Currency
	for _, c := range eligible {
		if c.Price.Hourly != nil {
			count[c.Price.Hourly.Currency]++
		}
	}
	for currency, n := range count {
		if n > count[best] || n == count[best] && currency < best {
			best = currency
		}
	}
	return best
}

// order returns a permutation of eligible, best first.
func (j *judge) order(eligible []*Candidate) []*Candidate {
	type keyed struct {
		*Candidate
		id   string
		keys [5]int64
	}
	criteria := j.criteria(eligible)
	all, sorted := make([]keyed, len(eligible)), make([]*keyed, len(eligible))
	for i, c := range eligible {
		all[i] = keyed{Candidate: c, id: c.ID()}
		for k, by := range criteria {
			all[i].keys[k] = by.key(c)
		}
		sorted[i] = &all[i]
	}
	slices.SortFunc(sorted, func(a, b *keyed) int {
		for k := range a.keys {
			if a.keys[k] != b.keys[k] {
				return cmp.Compare(a.keys[k], b.keys[k])
			}
		}
		return cmp.Compare(a.id, b.id)
	})
	out := make([]*Candidate, len(sorted))
	for i, k := range sorted {
		out[i] = k.Candidate
	}
	return j.listedNext(out)
}

// orderedFallback reports a fallback list beside which nothing is pinned: it
// says what may follow the first choice.
func (j *judge) orderedFallback() bool { return len(j.bindings) == 0 && len(j.Policy.Fallback) > 0 }

// listedNext moves what a fallback list names behind the first choice, in the
// list's order.
func (j *judge) listedNext(order []*Candidate) []*Candidate {
	if !j.orderedFallback() || len(order) < 2 {
		return order
	}
	slices.SortStableFunc(order[1:], func(a, b *Candidate) int {
		return cmp.Compare(rank(j.Policy.Fallback, a.Binding), rank(j.Policy.Fallback, b.Binding))
	})
	return order
}

func (j *judge) fallbacks(order []*Candidate) []*Candidate {
	rest := order[1:]
	if !j.orderedFallback() {
		return slices.Clone(rest)
	}
	n := 0
	for n < len(rest) && rank(j.Policy.Fallback, rest[n].Binding) != unlisted {
		n++
	}
	return slices.Clone(rest[:n])
}

// why names the criterion that beat the last of the others.
func (j *judge) why(order []*Candidate) string {
	if len(order) == 1 {
		return "it is the only place that can run it"
	}
	first, others := order[0], slices.Clone(order[1:])
	for _, by := range j.criteria(order) {
		key := by.key(first)
		others = slices.DeleteFunc(others, func(c *Candidate) bool { return by.key(c) > key })
		if len(others) == 0 {
			return by.why
		}
	}
	return "all else is equal, and its name comes first"
}
