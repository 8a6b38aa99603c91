package turns

import (
	"cmp"
	"slices"
)

// Taken is what a claim took from one gate.
type Taken[T any] struct {
	Jobs  []T
	Ahead int // of them, on credit
}

// Answer is the order in which a claim answers what it took from gates: what comes on
// credit before the rest, then those of the gate that has the fewest, because they are
// soon over and the others go on. Suspects are in front of all: they were taken because
// they can start at once. ahead is told of each that comes on credit.
func Answer[T any](taken []Taken[T], suspect func(*T) bool, ahead func(*T)) (all []T) {
	slices.SortStableFunc(taken, func(a, b Taken[T]) int {
		return cmp.Or(cmp.Compare(min(b.Ahead, 1), min(a.Ahead, 1)), cmp.Compare(len(a.Jobs), len(b.Jobs)))
	})
	for _, t := range taken {
		for i := range t.Jobs[:min(t.Ahead, len(t.Jobs))] {
			ahead(&t.Jobs[i])
		}
		all = append(all, t.Jobs...)
	}
	first := 0
	for i := range all {
		if suspect(&all[i]) {
			t := all[i]
			copy(all[first+1:i+1], all[first:i])
			all[first] = t
			first++
		}
	}
	return all
}
