package job

import "hash/fnv"

// Share splits a queue's cluster-wide total over the live workers that serve
// it: worker index (0-based, in id order) of count gets the result. The
// remainder starts at a place that depends on the queue, so that one worker
// does not collect the extra slot of every queue. The shares add up to total.
func Share(total, count, index int, queue string) int {
	if count < 1 || index < 0 || index >= count {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(queue))
	shifted := (index + int(h.Sum32()%uint32(count))) % count
	share := total / count
	if shifted < total%count {
		share++
	}
	return share
}
