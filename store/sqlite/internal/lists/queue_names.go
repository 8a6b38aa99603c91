package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// nextArchivedQueue is the queue behind one that has jobs of a final state.
//   - A seek on pawl_job_archive_state.
const nextArchivedQueue = `SELECT queue
	FROM pawl_job_archive INDEXED BY pawl_job_archive_state
	WHERE namespace = ? AND state = ? AND queue > ?
	ORDER BY queue
	LIMIT 1`

// queuesOf names the queues that have jobs of a state, one more than MaxQueues at
// most. It steps from queue to queue: one seek for each.
func queuesOf(c *lite.Snapshot, state job.State) (names []string, err error) {
	for last := ""; len(names) <= store.MaxQueues; {
		q := c.On(jobs.NextWaitingQueue)
		if state.Final() {
			q = c.On(nextArchivedQueue).Int(int64(state))
		}
		if !q.Text(last).Step() {
			return names, q.Done()
		}
		last = q.ColText(0)
		names = append(names, last)
		if err := q.Done(); err != nil {
			return nil, err
		}
	}
	return names, nil
}
