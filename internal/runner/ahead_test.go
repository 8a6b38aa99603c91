package runner

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pawlwork/pawl/job"
)

// lined is a runner whose queue has tasks of gates in line, in this order.
func lined(gates ...int64) (r *Runner, q *queue) {
	q = &queue{name: "q"}
	r = &Runner{}
	r.queues = []*queue{q}
	for i, gate := range gates {
		r.tasks.move(waits(q, gate, i), placeReady)
	}
	return r, q
}

func waits(q *queue, gate int64, n int) *Task {
	return &Task{queue: q, Job: job.Job{Used: n, Rare: &job.Rare{Gate: gate}}}
}

// order is the gates of those in line, and what tells their tasks apart.
func (q *queue) order() (all []string) {
	for t := range q.ready.all() {
		all = append(all, fmt.Sprint(t.Job.Gate(), ".", t.Job.Used))
	}
	return all
}

// Who missed turns starts before what was claimed earlier, in the order of its claims and
// never before its own.
func TestJ19_WhoMissedTurnsStartsFirst(t *testing.T) {
	r, q := lined(1, 1, 2, 1)
	is := func(want ...string) {
		t.Helper()
		if got := q.order(); !slices.Equal(got, want) || q.ready.len() != len(want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	r.goAhead([]*Task{waits(q, 3, 10), waits(q, 3, 11)})
	is("3.10", "3.11", "1.0", "1.1", "2.2", "1.3")

	r.tasks.move(q.ready.head, placeRunning)
	r.tasks.move(waits(q, 3, 12), placeReady) // in its turn
	is("3.11", "1.0", "1.1", "2.2", "1.3", "3.12")

	r.goAhead([]*Task{waits(q, 4, 20), waits(q, 3, 13)})
	is("3.11", "3.12", "4.20", "3.13", "1.0", "1.1", "2.2", "1.3")

	r.goAhead([]*Task{waits(q, 2, 30)})
	is("3.11", "3.12", "4.20", "3.13", "2.2", "2.30", "1.0", "1.1", "1.3")
}
