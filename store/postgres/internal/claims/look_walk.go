package claims

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
)

// lookWalk is how far one look has read a lane, step by step, and what it may take. It
// keeps the order of priorities: while there may be more of one, nothing is taken that
// comes behind the last that was read of it. Of each priority it reads up to a bound, so
// that any number of jobs for others stops nobody.
type lookWalk struct {
	lane     *claimQueue
	bound    int
	at       positions // the last that was read
	open     []int16   // priorities of which there may be more
	examined [job.MaxPriority + 1]int
	met      []candidate // each priority in its order
	tried    map[job.ID]bool
}

func newLookWalk(l *claimQueue) *lookWalk {
	return &lookWalk{lane: l, bound: LookBound(l.queue.Limit), at: l.view.At, open: slices.Clone(jobs.Priorities), tried: map[job.ID]bool{}}
}

// next lists the priorities to read: those of which it knows fewer than are wanted.
func (w *lookWalk) next() []int16 {
	known := [job.MaxPriority + 1]int{}
	for _, c := range w.waiting() {
		known[c.priority]++
	}
	list := slices.DeleteFunc(slices.Clone(w.open), func(p int16) bool { return known[p] >= w.lane.wants() })
	if len(list) == 0 { // those may only start, or are too large
		return w.open
	}
	return list
}

// read takes a step over, which asked for so many of each of its priorities. It reports
// whether one was read up to the bound.
func (w *lookWalk) read(step []int16, found []candidate, asked int) (bounded bool) {
	slices.SortStableFunc(found, w.order)
	counts := [job.MaxPriority + 1]int{}
	for _, c := range found {
		counts[c.priority]++
		w.at[c.priority] = c.position
	}
	w.met = append(w.met, found...)
	w.open = slices.DeleteFunc(slices.Clone(w.open), func(p int16) bool {
		w.examined[p] += counts[p]
		full := counts[p] >= asked && w.examined[p] >= w.bound
		bounded = bounded || full
		return full || slices.Contains(step, p) && counts[p] < asked
	})
	return bounded
}

// order is that of the claim: by priority, or by the due time that the priority shifts
// when the queue ages.
func (w *lookWalk) order(a, b candidate) int {
	first := cmp.Compare(a.priority, b.priority)
	if aging := w.lane.queue.Aging; aging > 0 {
		shift := func(c candidate) time.Time { return c.due.Add(time.Duration(c.priority) * aging) }
		first = cmp.Or(shift(a).Compare(shift(b)), first)
	}
	return cmp.Or(first, a.due.Compare(b.due), bytes.Compare(a.ID[:], b.ID[:]))
}

// waiting lists what can be taken and was not tried.
func (w *lookWalk) waiting() (list []candidate) {
	for _, c := range w.met {
		if c.takes && !w.tried[c.ID] {
			list = append(list, c)
		}
	}
	return list
}

// hidden reports whether what nobody has read may come before a job.
func (w *lookWalk) hidden(c candidate) bool {
	return slices.ContainsFunc(w.open, func(p int16) bool {
		return w.order(candidate{position: w.at[p], priority: int(p)}, c) < 0
	})
}

// choose picks what to lease, in order. It is tried with that: taken, or locked by
// somebody, and the sweep finds it if that gives it back.
func (w *lookWalk) choose() (chosen []candidate) {
	list := w.waiting()
	slices.SortStableFunc(list, w.order)
	starts, size := w.lane.starts(), w.lane.bytes
	for _, c := range list {
		if len(chosen) == w.lane.wants() || size >= w.lane.room || w.hidden(c) {
			break
		}
		if c.rescued && len(chosen) >= starts {
			continue
		}
		size += c.bytes
		chosen = append(chosen, c)
		w.tried[c.ID] = true
	}
	return chosen
}

// mixed reports whether it met jobs that are for others.
func (w *lookWalk) mixed() bool {
	return slices.ContainsFunc(w.met, func(c candidate) bool { return !c.takes })
}

// frontier is how far the lane may be passed: to the first that was left and can be taken.
func (w *lookWalk) frontier() positions {
	to, held := w.lane.view.At, [job.MaxPriority + 1]bool{}
	for _, c := range w.met {
		if held[c.priority] = held[c.priority] || c.takes && !w.tried[c.ID]; !held[c.priority] {
			to[c.priority] = c.position
		}
	}
	return to
}
