package route

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Packed keys and cut names order as the plain comparison does, however wide
// the keys are.
func TestSortingIsThePlainComparison(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "n")
		keys := make([][]int64, rapid.IntRange(0, 5).Draw(t, "criteria"))
		index := map[*Candidate]int{}
		var all []*Candidate
		var by []criterion
		for i := range n {
			c := &Candidate{Binding: rapid.SampledFrom([]string{"ext.", "ext.a", "ext.ab", "ext.abcdefgh", "ext.abcdefghi", "é"}).Draw(t, "name") +
				fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "suffix"))}
			all, index[c] = append(all, c), i
		}
		for k := range keys {
			for range n {
				keys[k] = append(keys[k], rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 2),
					rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64})).Draw(t, "key"))
			}
			by = append(by, criterion{fmt.Sprint(k), func(c *Candidate) int64 { return keys[k][index[c]] }})
		}
		s := newSorting(all, by)
		s.sort()
		plain := func(a, b *Candidate) int {
			for _, criterion := range by {
				if d := cmp.Compare(criterion.key(a), criterion.key(b)); d != 0 {
					return d
				}
			}
			return byName(a, b)
		}
		for i := 1; i < n; i++ {
			if a, b := all[s.rows[i-1].at], all[s.rows[i].at]; plain(a, b) > 0 {
				t.Fatalf("%s is before %s", a.Binding, b.Binding)
			}
		}
		if why := s.why(); why != plainWhy(all[s.rows[0].at], all, by) {
			t.Fatalf("won by %q, want %q", why, plainWhy(all[s.rows[0].at], all, by))
		}
	})
}

// plainWhy is the first criterion behind which no rival is left.
func plainWhy(first *Candidate, all []*Candidate, by []criterion) string {
	rivals := slices.DeleteFunc(slices.Clone(all), func(c *Candidate) bool { return c == first })
	for _, criterion := range by {
		rivals = slices.DeleteFunc(rivals, func(c *Candidate) bool { return criterion.key(c) > criterion.key(first) })
		if len(rivals) == 0 {
			return criterion.why
		}
	}
	return "all else is equal, and its name comes first"
}

func TestNamesThatMeetInTheHashSetAreToldApart(t *testing.T) {
	t.Parallel()
	var all []Candidate
	for i := range 5000 {
		all = append(all, Candidate{Binding: fmt.Sprintf("ext.%d", i)})
	}
	if twice := namedTwice(all); twice != nil {
		t.Errorf("%s is called twice", twice.ID())
	}
	for _, i := range []int{0, 1234, 4999} {
		if twice := namedTwice(append(slices.Clone(all), all[i])); twice == nil || twice.Binding != all[i].Binding {
			t.Errorf("%s is called twice, and %v was found", all[i].Binding, twice)
		}
	}
}
