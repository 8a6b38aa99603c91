package claims

import "github.com/pawlwork/pawl/job"

// lookEnds keeps the order of priorities where a look ended too early. A look reads some
// jobs of each priority. Where it read as many as it asked for and they are for others,
// more may wait behind them, which come before what it read of lower priorities: those
// are left, and the next look reads more. Where it would not read more they are taken,
// so that any number of jobs for others stops nobody.
type lookEnds struct {
	asked  int  // of each priority
	widens bool // the next look reads more
	last   int  // priority
	met    [job.MaxPriority + 1]int
	closed [job.MaxPriority + 1]bool // of what waits behind those that were met nothing can be taken now
}

// meet is told of each job that was read, in the order in which they are taken.
func (e *lookEnds) meet(priority int) {
	e.met[priority]++
	e.last = priority
}

func (e *lookEnds) close(priority int) { e.closed[priority] = true }

func (e *lookEnds) closeAll() {
	for i := range e.closed {
		e.closed[i] = true
	}
}

// hidesSome reports whether what nobody has read may come before all that is left.
func (e *lookEnds) hidesSome() bool {
	return e.widens && e.met[e.last] == e.asked && !e.closed[e.last]
}
