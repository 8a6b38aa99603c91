package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// totals counts the next jobs behind an id, live and archived together: a job that
// moves from one to the other is counted once.
//   - The primary keys of both tables.
const totals = `SELECT queue, state, count(*), max(id)
	FROM (
		SELECT *
		FROM (
			SELECT id, queue, state
			FROM pawl_job
			WHERE namespace = ?1 AND id > ?2
			ORDER BY id
			LIMIT ?3)
		UNION ALL
		SELECT *
		FROM (
			SELECT id, queue, state
			FROM pawl_job_archive
			WHERE namespace = ?1 AND id > ?2
			ORDER BY id
			LIMIT ?3)
		ORDER BY id
		LIMIT ?3)
	GROUP BY queue, state`

// Totals counts the next step jobs behind an id by queue and state. It answers the last
// of them, nil when there are none.
func Totals(c *lite.Snapshot, after []byte, step int) (counts []store.QueueCount, last []byte, jobs int64, err error) {
	q := c.On(totals).Blob(append([]byte{}, after...)).Int(int64(step))
	for q.Step() {
		n := store.QueueCount{Queue: q.ColText(0), State: job.State(q.ColInt(1))}
		n.Jobs = int(q.ColInt(2))
		counts, jobs = append(counts, n), jobs+int64(n.Jobs)
		if id := q.ColBlob(3); string(id) > string(last) {
			last = id
		}
	}
	return counts, last, jobs, q.Done()
}
