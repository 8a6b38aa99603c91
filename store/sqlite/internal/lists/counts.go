package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

const (
	// countWaiting counts those of one queue.
	//   - pawl_job_ready and pawl_job_gated alone.
	countWaiting = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_job INDEXED BY pawl_job_ready
		WHERE namespace = ?1 AND state = 2 AND gate IS NULL AND queue = ?2
		UNION ALL
		SELECT 1
		FROM pawl_job INDEXED BY pawl_job_gated
		WHERE namespace = ?1 AND state = 2 AND gate IS NOT NULL AND queue = ?2
		LIMIT ?3)`

	// countArchived counts those of one queue and state.
	//   - pawl_job_archive_state alone.
	countArchived = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_job_archive INDEXED BY pawl_job_archive_state
		WHERE namespace = ? AND state = ? AND queue = ?
		LIMIT ?)`

	// countHeld counts what runs, is suspended or blocked, of all queues.
	//   - pawl_job_held; the queue is in the table.
	countHeld = `SELECT queue, count(*)
	FROM (
		SELECT queue
		FROM pawl_job INDEXED BY pawl_job_held
		WHERE namespace = ? AND state <> 2 AND state = ?
		LIMIT ?)
	GROUP BY queue`
)

// Counts counts the jobs of each queue in each state.
func Counts(c *lite.Snapshot) (counts []store.QueueCount, err error) {
	const most = store.MaxCounted + 1
	add := func(queue string, s job.State, n int64) {
		counts = append(counts, store.QueueCount{Queue: queue, State: s, Counted: store.Bounded(int(n))})
	}
	for _, s := range job.States() {
		switch {
		case s == job.Waiting:
			for queue := ""; ; {
				q := c.On(jobs.NextWaitingQueue).Text(queue)
				found := q.Step()
				if found {
					queue = q.ColText(0)
				}
				if err := q.Done(); err != nil {
					return nil, err
				}
				if !found {
					break
				}
				n, err := c.On(countWaiting).Text(queue).Int(most).One()
				if err != nil {
					return nil, err
				}
				add(queue, s, n)
			}
		case s.Final():
			queues, err := archivedQueues(c, s)
			if err != nil {
				return nil, err
			}
			for _, queue := range queues {
				n, err := c.On(countArchived).Int(int64(s)).Text(queue).Int(most).One()
				if err != nil {
					return nil, err
				}
				add(queue, s, n)
			}
		default:
			first, total := len(counts), int64(0)
			q := c.On(countHeld).Int(int64(s)).Int(most)
			for q.Step() {
				add(q.ColText(0), s, q.ColInt(1))
				total += q.ColInt(1)
			}
			if err := q.Done(); err != nil {
				return nil, err
			}
			for i := range counts[first:] {
				counts[first+i].More = total > store.MaxCounted
			}
		}
	}
	store.SortCounts(counts)
	return counts, nil
}
