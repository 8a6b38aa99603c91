package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// spansOf says which stretches of which index a filter needs, in any order.
//
// Live jobs: what waits is found by its queue, what runs by its worker, what is
// suspended or blocked by its state. Archived jobs: by state and queue, one
// stretch for each queue that has such jobs. Where nothing of that is asked for,
// the table itself is read.
func spansOf(c *lite.Snapshot, f store.Filter) (spans []span, err error) {
	live, archived := f.Reads()
	for _, s := range live {
		r := liveSpan(c)
		switch {
		case s == 0 || s == job.Waiting && f.Queue == "":
			r = walk(r, f, s)
		case s == job.Waiting:
			spans = append(spans, gatedSpan(c, f.Queue).narrow(f, true))
			r = waitingSpan(c, f.Queue)
		case s == job.Running:
			r = inQueue(runningSpan(c, f), f)
		default:
			r.index = "pawl_job_held"
			r = inQueue(r.and("state <> 2 AND state = ? AND worker IS NULL", func(q *lite.Query) { q.Int(int64(s)) }), f)
		}
		spans = append(spans, r.narrow(f, true))
	}
	for _, s := range archived {
		if s == 0 {
			spans = append(spans, archivedSpan(c).narrow(f, false))
			continue
		}
		queues := []string{f.Queue}
		if f.Queue == "" {
			if queues, err = queuesOf(c, s); err != nil {
				return nil, err
			}
		}
		if len(queues) > store.MaxQueues { // too many to go through: by its key
			spans = append(spans, walk(archivedSpan(c), f, s).narrow(f, false))
			continue
		}
		for _, name := range queues {
			spans = append(spans, endedSpan(c, s, name).narrow(f, false))
		}
	}
	return spans, nil
}

// The spans, with nothing compared row by row.

func liveSpan(c *lite.Snapshot) span {
	return span{table: "pawl_job", row: jobs.LiveRow}.and("namespace = ?", func(q *lite.Query) { q.Int(c.Namespace) })
}

func archivedSpan(c *lite.Snapshot) span {
	return span{table: "pawl_job_archive", row: jobs.ArchivedRow}.and("namespace = ?", func(q *lite.Query) { q.Int(c.Namespace) })
}

// waitingSpan is the waiting jobs of a queue. Those of a list by id are few, else it
// is split.
func waitingSpan(c *lite.Snapshot, queue string) span {
	r := liveSpan(c)
	r.index, r.unsorted = "pawl_job_ready", true
	return r.and("state = 2 AND gate IS NULL AND queue = ?", func(q *lite.Query) { q.Text(queue) })
}

// gatedSpan is the jobs of a queue that wait behind gates.
func gatedSpan(c *lite.Snapshot, queue string) span {
	r := liveSpan(c)
	r.index, r.unsorted = "pawl_job_gated", true
	return r.and("state = 2 AND gate IS NOT NULL AND queue = ?", func(q *lite.Query) { q.Text(queue) })
}

// runningSpan is the running jobs, by worker and id: those of one are in order. Those
// of all in a list by id are few, else it is split.
func runningSpan(c *lite.Snapshot, f store.Filter) span {
	r := liveSpan(c)
	r.index = "pawl_job_held"
	if f.Worker != 0 {
		return r.and("state <> 2 AND state = 3 AND worker = ?", func(q *lite.Query) { q.Int(int64(f.Worker)) })
	}
	r.unsorted = true
	return r.and("state <> 2 AND state = 3", nil)
}

// endedSpan is the jobs of a queue that ended in one way, by id.
func endedSpan(c *lite.Snapshot, s job.State, queue string) span {
	r := archivedSpan(c)
	r.index = "pawl_job_archive_state"
	return r.and("state = ? AND queue = ?", func(q *lite.Query) { q.Int(int64(s)).Text(queue) })
}

// walk makes a span of the whole table: state and queue are compared row by row.
func walk(r span, f store.Filter, s job.State) span {
	if s != 0 {
		r = r.but("state = ?", func(q *lite.Query) { q.Int(int64(s)) })
	}
	return inQueue(r, f)
}

func inQueue(r span, f store.Filter) span {
	if f.Queue == "" {
		return r
	}
	return r.but("queue = ?", func(q *lite.Query) { q.Text(f.Queue) })
}
