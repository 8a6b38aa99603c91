package claims

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// claimedBy reads what a worker still holds of one of its claims, within the
// bound of the claim.
func claimedBy(t *jobs.Transition, c *store.Claim) ([]store.LeasedJob, error) {
	var held []store.LeasedJob
	bytes := map[string]int64{}
	q := t.On("SELECT " + jobs.LiveColumns + ", begun FROM " + jobs.Running + " AND worker = ? AND claim = ? ORDER BY queue, priority, due, id").
		Int(int64(c.Worker)).Int(c.Seq)
	for q.Step() {
		if bytes[q.ColText(15)] >= c.PerQueue() {
			continue
		}
		var l store.LeasedJob
		jobs.ReadJob(q, &l.Job)
		l.Begun = q.ColBool(jobs.ColumnCount)
		bytes[l.Queue] += jobs.Large(&l.Job)
		held = append(held, l)
	}
	return held, q.Done()
}
