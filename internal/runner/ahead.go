package runner

// goAhead puts jobs whose keys have missed turns before what was claimed earlier and has
// not begun: had they been there in time they would have come first. What waits of the same
// keys goes with them, so that the order of a key stays. The store bounds how many there
// are: over time nobody has more than its share. The caller holds mu.
func (r *Runner) goAhead(tasks []*Task) {
	gates := map[int64]bool{}
	for _, t := range tasks {
		gates[t.Job.Gate()] = true
	}
	for _, q := range r.queues {
		line := q.ready.where(func(t *Task) bool { return t.ahead || gates[t.Job.Gate()] })
		for _, t := range tasks {
			if t.queue == q {
				line = append(line, t)
			}
		}
		for i := len(line) - 1; i >= 0; i-- {
			line[i].ahead = true
			r.tasks.moveFirst(line[i], placeReady)
		}
	}
}
