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
//   - pawl_job_ready alone, in its order.
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

	// nextPriority is the next that waiting jobs of a queue have.
	//   - pawl_job_ready, a seek.
	nextPriority = `SELECT min(priority)
	FROM pawl_job INDEXED BY pawl_job_ready
	WHERE namespace = ? AND state = 2 AND gate IS NULL AND queue = ? AND priority > ?`

	// countGated counts those of a queue that wait behind gates, ready and later.
	//   - pawl_job_gated alone, in its order.
	countGated = `SELECT coalesce(sum(due <= ?3), 0), coalesce(sum(due <= ?3 AND used > 0), 0),
		coalesce(sum(due > ?3), 0), coalesce(sum(due > ?3 AND used > 0), 0), min(due)
	FROM (
		SELECT used, due
		FROM pawl_job INDEXED BY pawl_job_gated
		WHERE namespace = ?1 AND state = 2 AND gate IS NOT NULL AND queue = ?2
		ORDER BY gate, priority, due, id
		LIMIT ?4)`
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

// waits adds what waits in a queue, priority by priority, and behind gates. Of each
// priority the first is read, however many there are before it: one of them is the
// oldest.
func waits(c *lite.Snapshot, s *store.QueueState, now int64, cap int) error {
	var jobs, retries [2]int
	var plain, gated store.QueueWaits
	for p := int64(job.MinPriority - 1); ; {
		next, err := c.On(nextPriority).Text(s.Name).Int(p).One()
		if err != nil {
			return err
		}
		if p = next; p == 0 { // most queues have one or none
			break
		}
		for n, text := range [2]string{countReady, countLater} {
			left := max(cap+1-jobs[n], 1)
			q := c.On(text).Text(s.Name).Int(p).Int(now).Int(int64(left))
			if q.Step() {
				jobs[n] += int(q.ColInt(0))
				retries[n] += int(q.ColInt(1))
				if n == 0 && !q.ColNull(2) {
					if due := lite.TimeOf(q.ColInt(2)); plain.Oldest.IsZero() || due.Before(plain.Oldest) {
						plain.Oldest = due
					}
				}
			}
			if err := q.Done(); err != nil {
				return err
			}
		}
	}
	plain.Ready, plain.ReadyRetries, plain.Scheduled, plain.ScheduledRetries = jobs[0], retries[0], jobs[1], retries[1]
	q := c.On(countGated).Text(s.Name).Int(now).Int(int64(cap + 1))
	if q.Step() {
		gated.Ready, gated.ReadyRetries = int(q.ColInt(0)), int(q.ColInt(1))
		gated.Scheduled, gated.ScheduledRetries = int(q.ColInt(2)), int(q.ColInt(3))
		if gated.Ready > 0 {
			gated.Oldest = lite.TimeOf(q.ColInt(4))
		}
	}
	if err := q.Done(); err != nil {
		return err
	}
	s.Waits(plain, gated, cap)
	return nil
}
