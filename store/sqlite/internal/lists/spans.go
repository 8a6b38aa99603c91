package lists

import (
	"slices"
	"strings"

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
	inNamespace := func(q *lite.Query) { q.Int(c.Namespace) }
	live, archived := f.Reads()
	for _, s := range live {
		r := span{table: "pawl_job", row: jobs.LiveRow}.and("namespace = ?", inNamespace)
		switch {
		case s == 0 || s == job.Waiting && f.Queue == "":
			r = walk(r, f, s)
		case s == job.Waiting:
			gated := r
			gated.index, gated.unsorted = "pawl_job_gated", true
			gated = gated.and("state = 2 AND gate IS NOT NULL AND queue = ?", func(q *lite.Query) { q.Text(f.Queue) })
			spans = append(spans, gated.narrow(f, true))
			r.index, r.unsorted = "pawl_job_ready", true
			r = r.and("state = 2 AND gate IS NULL AND queue = ?", func(q *lite.Query) { q.Text(f.Queue) })
		case s == job.Running && f.Worker == 0:
			r.index, r.unsorted = "pawl_job_held", true
			r = inQueue(r.and("state <> 2 AND state = 3", nil), f)
		case s == job.Running:
			r.index = "pawl_job_held"
			r = inQueue(r.and("state <> 2 AND state = 3 AND worker = ?", func(q *lite.Query) { q.Int(int64(f.Worker)) }), f)
		default:
			r.index = "pawl_job_held"
			r = inQueue(r.and("state <> 2 AND state = ? AND worker IS NULL", func(q *lite.Query) { q.Int(int64(s)) }), f)
		}
		spans = append(spans, r.narrow(f, true))
	}
	for _, s := range archived {
		r := span{table: "pawl_job_archive", row: jobs.ArchivedRow}.and("namespace = ?", inNamespace)
		if s == 0 {
			spans = append(spans, r.narrow(f, false))
			continue
		}
		r.index = "pawl_job_archive_state"
		queues := []string{f.Queue}
		if f.Queue == "" {
			if queues, err = archivedQueues(c, s); err != nil {
				return nil, err
			}
		}
		for _, name := range queues {
			spans = append(spans, r.and("state = ? AND queue = ?", func(q *lite.Query) { q.Int(int64(s)).Text(name) }).narrow(f, false))
		}
	}
	return spans, nil
}

// walk makes a span of the whole table: states and queue are compared row by row.
func walk(r span, f store.Filter, states ...job.State) span {
	var some []string
	for _, s := range states {
		if s != 0 {
			some = append(some, "state = ?")
			r.look = append(slices.Clip(r.look), func(q *lite.Query) { q.Int(int64(s)) })
		}
	}
	if len(some) > 0 {
		r.match = append(slices.Clip(r.match), "("+strings.Join(some, " OR ")+")")
	}
	return inQueue(r, f)
}

func inQueue(r span, f store.Filter) span {
	if f.Queue == "" {
		return r
	}
	return r.but("queue = ?", func(q *lite.Query) { q.Text(f.Queue) })
}

// listSpans are the spans that are in the order of a page, and those that are
// few enough to be sorted. What is not is walked by its id, together.
func listSpans(c *lite.Snapshot, f store.Filter, p store.Page) (spans []span, err error) {
	if p.Order == store.ByDue {
		for n := job.MinPriority; n <= job.MaxPriority; n++ {
			spans = append(spans, dueSpan(c, f, n))
		}
		return spans, nil
	}
	all, err := spansOf(c, f)
	if err != nil {
		return nil, err
	}
	if p.Order == store.ByFinish {
		for i := range all {
			all[i].unsorted = true
		}
		return all, nil
	}
	var walked []job.State
	for _, r := range all {
		if r.unsorted {
			few, err := r.few(c)
			if err != nil {
				return nil, err
			}
			if !few {
				if r.index == "pawl_job_ready" {
					walked = append(walked, job.Waiting)
				} else {
					walked = append(walked, job.Running)
				}
				continue
			}
		}
		spans = append(spans, r)
	}
	if len(walked) > 0 {
		r := span{table: "pawl_job", row: jobs.LiveRow}.and("namespace = ?", func(q *lite.Query) { q.Int(c.Namespace) })
		spans = append(spans, walk(r, f, walked...).narrow(f, true))
	}
	return spans, nil
}

// dueSpan is the waiting jobs of one queue and priority, the next one due first.
func dueSpan(c *lite.Snapshot, f store.Filter, priority int) span {
	r := span{table: "pawl_job", index: "pawl_job_ready", row: jobs.LiveRow}.
		and("namespace = ? AND state = 2 AND gate IS NULL AND queue = ? AND priority = ?", func(q *lite.Query) { q.Int(c.Namespace).Text(f.Queue).Int(int64(priority)) })
	if !f.DueBefore.IsZero() {
		r = r.and("due <= ?", func(q *lite.Query) { q.Int(lite.Micros(f.DueBefore)) })
	}
	if !f.DueAfter.IsZero() {
		r = r.and("due > ?", func(q *lite.Query) { q.Int(lite.Micros(f.DueAfter)) })
	}
	return r.narrow(f, true)
}

// nextArchivedQueue is the queue behind one that has archived jobs of a state.
//   - A seek on pawl_job_archive_state.
const nextArchivedQueue = `SELECT queue
	FROM pawl_job_archive INDEXED BY pawl_job_archive_state
	WHERE namespace = ? AND state = ? AND queue > ?
	ORDER BY queue
	LIMIT 1`

// archivedQueues steps from queue to queue on the index: one seek for each.
func archivedQueues(c *lite.Snapshot, state job.State) ([]string, error) {
	var queues []string
	last := ""
	for {
		q := c.On(nextArchivedQueue).Int(int64(state)).Text(last)
		if !q.Step() {
			return queues, q.Done()
		}
		last = q.ColText(0)
		queues = append(queues, last)
		if err := q.Done(); err != nil {
			return nil, err
		}
	}
}
