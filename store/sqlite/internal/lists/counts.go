package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
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
	for _, s := range job.States() {
		var some []store.QueueCount
		if s.Final() || s == job.Waiting {
			some, err = countQueues(c, s)
		} else {
			some, err = heldCounts(c, s)
		}
		if err != nil {
			return nil, err
		}
		counts = append(counts, some...)
	}
	store.SortCounts(counts)
	return counts, nil
}

// countQueues counts the jobs of a state that an index has queue by queue.
func countQueues(c *lite.Snapshot, s job.State) (counts []store.QueueCount, err error) {
	names, err := queuesOf(c, s)
	if err != nil {
		return nil, err
	}
	names = store.FirstQueues(names)
	cap := store.QueueCap(len(names))
	for _, queue := range names {
		q := c.On(countWaiting)
		if s.Final() {
			q = c.On(countArchived).Int(int64(s))
		}
		n, err := q.Text(queue).Int(int64(cap + 1)).One()
		if err != nil {
			return nil, err
		}
		counts = append(counts, store.QueueCount{Queue: queue, State: s, Counted: store.Bounded(int(n), cap)})
	}
	return counts, nil
}

// heldCounts counts the jobs of a state that no index has queue by queue.
func heldCounts(c *lite.Snapshot, s job.State) (counts []store.QueueCount, err error) {
	jobs, err := held(c, s)
	total := 0
	for _, n := range jobs {
		total += n
	}
	for queue, n := range jobs {
		counts = append(counts, store.QueueCount{Queue: queue, State: s, Counted: store.Counted{
			Jobs: min(n, store.MaxCounted), More: total > store.MaxCounted,
		}})
	}
	return counts, err
}

// held counts what runs, is suspended or blocked by queue, one more than MaxCounted
// of all queues together at most.
func held(c *lite.Snapshot, s job.State) (map[string]int, error) {
	jobs := map[string]int{}
	q := c.On(countHeld).Int(int64(s)).Int(store.MaxCounted + 1)
	for q.Step() {
		jobs[q.ColText(0)] = int(q.ColInt(1))
	}
	return jobs, q.Done()
}
