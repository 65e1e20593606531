package strictyaml

import (
	"cmp"
	"slices"

	"github.com/agext/levenshtein"
)

// Nearest returns the known word closest to word, or "" if none is close enough to be a likely slip: at
// most a third of its letters differ, but at least one may.
func Nearest(word string, known []string) string {
	if near := NearestN(word, known, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}

// NearestN returns at most n known words that word may stand for, closest first, ties in alphabetical
// order.
func NearestN(word string, known []string, n int) []string {
	if len(word) > maxKey {
		return nil
	}
	type scored struct {
		word string
		dist int
	}
	var found []scored
	for _, k := range known {
		if d := levenshtein.Distance(word, k, nil); d <= max(1, min(len(word), len(k))/3) {
			found = append(found, scored{k, d})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), cmp.Compare(a.word, b.word))
	})
	near := make([]string, 0, n)
	for _, f := range found[:min(n, len(found))] {
		near = append(near, f.word)
	}
	return near
}
