package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// What counts the waiting jobs of a queue and priority that are ready, or due later,
// and those of them that have failed before.
//   - pawl_job_ready, in its order; the attempts are in the table.
const (
	countReady = `SELECT count(*), coalesce(sum(used > 0), 0), min(due)
	FROM (
		SELECT used, due
		FROM pawl_job INDEXED BY pawl_job_ready
		WHERE namespace = ? AND state = 2 AND gate IS NULL AND queue = ? AND priority = ? AND due <= ?
		ORDER BY due, id
		LIMIT ?)`

	countLater = `SELECT count(*), coalesce(sum(used > 0), 0)
	FROM (
		SELECT used
		FROM pawl_job INDEXED BY pawl_job_ready
		WHERE namespace = ? AND state = 2 AND gate IS NULL AND queue = ? AND priority = ? AND due > ?
		ORDER BY due, id
		LIMIT ?)`
)

// Queues tells how queues stand: those named, or all that there are.
func Queues(c *lite.Snapshot, names []string) ([]store.QueueState, error) {
	now := c.Clock.Now()
	var facts store.QueueFacts
	var err error
	if facts.Workers, err = workers.Serving(c, now); err != nil {
		return nil, err
	}
	if facts.Pauses, err = settings.Pauses(c); err != nil {
		return nil, err
	}
	if facts.Cooling, err = settings.CoolDowns(c, now); err != nil {
		return nil, err
	}
	if facts.Running, err = held(c, job.Running); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		if facts.Waiting, err = queuesOf(c, job.Waiting); err != nil {
			return nil, err
		}
	}
	states := facts.States(names)
	for i := range states {
		if err := waits(c, &states[i], now, store.QueueCap(len(states))); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// waits adds what waits in a queue, priority by priority. Of each the first is read,
// however many there are before it: one of them is the oldest.
func waits(c *lite.Snapshot, s *store.QueueState, now int64, cap int) error {
	var jobs, retries [2]int
	for n, text := range [2]string{countReady, countLater} {
		for p := job.MinPriority; p <= job.MaxPriority; p++ {
			left := max(cap+1-jobs[n], 1)
			q := c.On(text).Text(s.Name).Int(int64(p)).Int(now).Int(int64(left))
			if q.Step() {
				jobs[n] += int(q.ColInt(0))
				retries[n] += int(q.ColInt(1))
				if n == 0 && !q.ColNull(2) {
					if due := lite.TimeOf(q.ColInt(2)); s.Oldest.IsZero() || due.Before(s.Oldest) {
						s.Oldest = due
					}
				}
			}
			if err := q.Done(); err != nil {
				return err
			}
		}
	}
	s.Waits(jobs[0], retries[0], jobs[1], retries[1], cap)
	return nil
}
