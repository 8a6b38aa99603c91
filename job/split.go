package job

import (
	"hash/fnv"
	"slices"
)

// Split gives each of the workers that share a queue's total its portion of it,
// in their order. The portions are as even as the workers allow: none is larger
// than what its worker can run, and who can run less leaves the rest to the
// others. Together they are the total, or all that the workers can run when
// that is less. What cannot be divided goes to workers from a place on that
// depends on the queue, so that one worker does not collect the extra slot of
// every queue.
//
// The answer depends on nothing else: workers that know of the same workers
// agree without asking each other.
func Split(total int, queue string, workers []int) []int {
	portions := make([]int, len(workers))
	var open []int // workers that may get more, by index
	for i, most := range workers {
		if most > 0 {
			open = append(open, i)
		}
	}
	for total > 0 && len(open) > 0 {
		even := total / len(open)
		filled := slices.DeleteFunc(slices.Clone(open), func(i int) bool { return workers[i] > even })
		if len(filled) == 0 {
			first := start(queue, len(open))
			for n, i := range open {
				portions[i] = even
				if (n+first)%len(open) < total%len(open) {
					portions[i]++
				}
			}
			break
		}
		for _, i := range filled {
			portions[i] = workers[i]
			total -= workers[i]
		}
		open = slices.DeleteFunc(open, func(i int) bool { return workers[i] <= even })
	}
	return portions
}

// start is a place among n that depends on the queue's name.
func start(queue string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(queue))
	return int(h.Sum32() % uint32(n))
}
