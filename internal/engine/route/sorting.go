package route

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// sorting puts candidates in order by criteria. A decision among thousands of
// places is made while somebody waits, so keys are computed once, those that
// tell nothing apart are dropped, and most comparisons are of two integers.
type sorting struct {
	all     []*Candidate
	columns []column
	packed  int // how many columns are part of row.key
	rows    []row
}

// column holds one criterion's keys, as distances from the smallest.
type column struct {
	why  string
	bits int      // of a packed column
	keys []uint64 // of one that is not packed
}

type row struct {
	key  uint64 // as many of the first columns as fit
	name uint64 // the name's first bytes that tell names apart
	at   int32  // index in all
}

func newSorting(all []*Candidate, by []criterion) *sorting {
	s := &sorting{all: all, rows: make([]row, len(all))}
	free, keys := 64, make([]uint64, len(all))
	for _, criterion := range by {
		if criterion.key == nil {
			continue
		}
		width := distances(all, criterion.key, keys)
		if width == 0 {
			continue // all are equal
		}
		if s.packed == len(s.columns) && width <= free { // behind one that does not fit, none may be packed
			for i, key := range keys {
				s.rows[i].key = s.rows[i].key<<width | key
			}
			s.columns = append(s.columns, column{why: criterion.why, bits: width})
			s.packed, free = len(s.columns), free-width
			continue
		}
		s.columns = append(s.columns, column{why: criterion.why, keys: keys})
		keys = make([]uint64, len(all))
	}
	skip := commonPrefix(all)
	for i, c := range all {
		s.rows[i].at, s.rows[i].name = int32(i), firstBytes(c.Binding[skip:])
	}
	return s
}

// distances fills keys and returns how many bits they need.
func distances(all []*Candidate, key func(*Candidate) int64, keys []uint64) int {
	low := key(all[0])
	for i, c := range all {
		k := key(c)
		keys[i], low = uint64(k), min(low, k)
	}
	var widest uint64
	for i := range keys {
		keys[i] -= uint64(low)
		widest |= keys[i]
	}
	return bits.Len64(widest)
}

func commonPrefix(all []*Candidate) int {
	prefix := all[0].Binding
	for _, c := range all {
		for !strings.HasPrefix(c.Binding, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return len(prefix)
}

// firstBytes is a number that orders as the first eight bytes of s do.
func firstBytes(s string) (n uint64) {
	for i := range min(8, len(s)) {
		n |= uint64(s[i]) << (56 - 8*i)
	}
	return n
}

func (s *sorting) sort() {
	slices.SortFunc(s.rows, func(a, b row) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		for _, column := range s.columns[s.packed:] {
			if x, y := column.keys[a.at], column.keys[b.at]; x != y {
				return cmp.Compare(x, y)
			}
		}
		if a.name != b.name {
			return cmp.Compare(a.name, b.name)
		}
		return byName(s.all[a.at], s.all[b.at])
	})
}

// byName is the order of last resort, and that of refusals.
func byName(a, b *Candidate) int {
	return cmp.Or(strings.Compare(a.Binding, b.Binding), strings.Compare(a.HostName(), b.HostName()))
}

// why names the criterion by which the first beat the last of the others.
func (s *sorting) why() string {
	first, decisive := s.rows[0], 0
	for _, other := range s.rows[1:] {
		decisive = max(decisive, s.differ(first, other))
	}
	if decisive == len(s.columns) {
		return "all else is equal, and its name comes first"
	}
	return s.columns[decisive].why
}

// differ is the first column in which two rows do, or how many there are.
func (s *sorting) differ(a, b row) int {
	if different := a.key ^ b.key; different != 0 {
		at, below := s.packed-1, s.columns[s.packed-1].bits
		for different>>below != 0 { // it is further to the front
			at--
			below += s.columns[at].bits
		}
		return at
	}
	for i := s.packed; i < len(s.columns); i++ {
		if keys := s.columns[i].keys; keys[a.at] != keys[b.at] {
			return i
		}
	}
	return len(s.columns)
}
