package route

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// sorting orders candidates by criteria. Users wait for a decision among thousands of places, so it computes keys once,
// drops columns where all are equal, and sorts mostly integers.
type sorting struct {
	all     []*Candidate
	columns []column
	packed  int // number of columns in row.key
	rows    []row
	spare   []row // of radix
}

// column has one criterion's keys, as distances from the smallest.
type column struct {
	why  string
	bits int      // if the column is packed
	keys []uint64 // if it is not packed
}

type row struct {
	key  uint64 // as many of the first columns as fit
	name uint64 // the first bytes in which names differ
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
		if s.packed == len(s.columns) && width <= free { // none may be packed after one that does not fit
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

// distances fills keys and returns the number of bits they need.
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

// firstBytes returns a number that orders like the first eight bytes of s.
func firstBytes(s string) (n uint64) {
	for i := range min(8, len(s)) {
		n |= uint64(s[i]) << (56 - 8*i)
	}
	return n
}

func (s *sorting) sort() {
	s.radix(func(r *row) *uint64 { return &r.name })
	s.radix(func(r *row) *uint64 { return &r.key })
	// Unpacked columns decide among rows that are equal so far.
	for from := 0; from < len(s.rows); {
		to := from + 1
		for to < len(s.rows) && s.rows[to].key == s.rows[from].key && (s.rows[to].name == s.rows[from].name || s.packed < len(s.columns)) {
			to++
		}
		if to-from > 1 {
			slices.SortFunc(s.rows[from:to], s.compare)
		}
		from = to
	}
}

// radix sorts the rows by a number and keeps the order of equal ones: byte by byte from the last, skipping bytes in which
// all are equal.
func (s *sorting) radix(number func(*row) *uint64) {
	var different uint64
	for i := range s.rows {
		different |= *number(&s.rows[i]) ^ *number(&s.rows[0])
	}
	for shift := 0; shift < 64; shift += 8 {
		if different>>shift&0xff == 0 {
			continue
		}
		if s.spare == nil {
			s.spare = make([]row, len(s.rows))
		}
		var at [257]int
		for i := range s.rows {
			at[*number(&s.rows[i])>>shift&0xff+1]++
		}
		for i := range 256 {
			at[i+1] += at[i]
		}
		for i := range s.rows {
			digit := *number(&s.rows[i]) >> shift & 0xff
			s.spare[at[digit]] = s.rows[i]
			at[digit]++
		}
		s.rows, s.spare = s.spare, s.rows
	}
}

// compare is the complete order of rows with the same key.
func (s *sorting) compare(a, b row) int {
	for _, column := range s.columns[s.packed:] {
		if x, y := column.keys[a.at], column.keys[b.at]; x != y {
			return cmp.Compare(x, y)
		}
	}
	return byName(s.all[a.at], s.all[b.at])
}

// byName decides ties, and orders refusals.
func byName(a, b *Candidate) int {
	return cmp.Or(strings.Compare(a.Binding, b.Binding), strings.Compare(a.HostName(), b.HostName()))
}

// why names the criterion by which the first beats the last of the others.
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

// differ returns the first column in which two rows differ, or the number of columns.
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
