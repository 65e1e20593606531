package route

// namedTwice finds a candidate with the name of an earlier one; nil if names are unique. It is a hash set by hand: filling
// Go's map takes longer than the rest of a decision.
func namedTwice(all []Candidate) *Candidate {
	size := 8
	for size < 2*len(all) {
		size *= 2
	}
	table := make([]int32, size) // index + 1; 0 is free
	for i := range all {
		c := &all[i]
		at := nameHash(c.Binding, c.HostName()) & uint32(size-1)
		for table[at] != 0 {
			if o := &all[table[at]-1]; o.Binding == c.Binding && o.HostName() == c.HostName() && (o.Host == nil) == (c.Host == nil) {
				return c
			}
			at = (at + 1) & uint32(size-1)
		}
		table[at] = int32(i + 1)
	}
	return nil
}

// nameHash is FNV-1a of both names.
func nameHash(binding, host string) uint32 {
	const prime = 16777619
	h := uint32(2166136261)
	for i := range len(binding) {
		h = (h ^ uint32(binding[i])) * prime
	}
	h = (h ^ '@') * prime
	for i := range len(host) {
		h = (h ^ uint32(host[i])) * prime
	}
	return h ^ h>>16
}
