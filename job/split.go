package job

import (
	"hash/fnv"
	"slices"
)

// Split gives each of the workers that share a queue's total its portion of it,
// in their order. The portions stand to each other as the weights do, as far as
// slots can be divided and the workers allow: none is larger than what its worker
// can run, and who can run less leaves the rest to the others. Together they are
// the total, or all that the workers can run when that is less. Without weights,
// and for those below 1, the weight is 1.
//
// Slots are handed out in one order, so that of a smaller total nobody gets more.
// The kth slot of a worker of weight w comes at (k − ½) / w: the rule of Webster,
// which favours neither large weights nor small ones. (Giving what cannot be divided
// to the largest remainders has no such order: there, one slot more in all may
// cost a worker one of its own.) Slots that come at one moment go to workers from a
// place on that depends on the queue, so that one worker does not collect the extra
// slot of every queue.
//
// The answer depends on nothing else: workers that know of the same workers
// agree without asking each other.
func Split(total int, queue string, workers, weights []int) []int {
	s := splitting{queue: queue, workers: workers, weights: weights, portions: make([]int, len(workers))}
	for i, most := range workers {
		if most > 0 {
			s.open = append(s.open, i)
		}
	}
	total = s.quick(total)
	for total > 0 && len(s.open) > 0 {
		total = s.next(total)
	}
	return s.portions
}

type splitting struct {
	queue            string
	workers, weights []int
	portions         []int
	open             []int // workers that may get more, by index
}

func (s *splitting) weight(i int) int {
	if i >= len(s.weights) {
		return 1
	}
	return min(max(s.weights[i], 1), MaxWeight)
}

// quick hands out all but a few: what comes until a moment at which no more than the
// total has come. With W the sum of the weights and n the number of workers that is
// (total − n/2) / W: until then each has at most moment × weight + ½. It returns what
// is left, no more than a slot for each worker.
func (s *splitting) quick(total int) (left int) {
	for {
		sum := 0
		for _, i := range s.open {
			sum += s.weight(i)
		}
		until := func(i int) int { return max(((2*total-len(s.open))*s.weight(i)+sum)/(2*sum), 0) }
		filled := slices.DeleteFunc(slices.Clone(s.open), func(i int) bool { return s.workers[i] > until(i) })
		if len(filled) == 0 {
			left = total
			for _, i := range s.open {
				s.portions[i] = until(i)
				left -= s.portions[i]
			}
			return left
		}
		// Without those that can run no more, the moment is later: they stay filled.
		s.open = slices.DeleteFunc(s.open, func(i int) bool { return s.workers[i] <= until(i) })
		for _, i := range filled {
			s.portions[i] = s.workers[i]
			total -= s.workers[i]
		}
	}
}

// next hands out the slots that come at the next moment, and returns what is left.
func (s *splitting) next(total int) (left int) {
	var first []int // workers whose next slot comes first
	for _, i := range s.open {
		if len(first) > 0 {
			// (2k−1) / 2w of both, without the fractions
			mine, theirs := (2*s.portions[i]+1)*s.weight(first[0]), (2*s.portions[first[0]]+1)*s.weight(i)
			if mine > theirs {
				continue
			}
			if mine < theirs {
				first = first[:0]
			}
		}
		first = append(first, i)
	}
	from := start(s.queue, len(first))
	for n, i := range first {
		if (n+from)%len(first) < total {
			s.portions[i]++
		}
	}
	s.open = slices.DeleteFunc(s.open, func(i int) bool { return s.portions[i] >= s.workers[i] })
	return max(total-len(first), 0)
}

// start is a place among n that depends on the queue's name.
func start(queue string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(queue))
	return int(h.Sum32() % uint32(n))
}
