package claims

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// heldOfClaim lists what a worker holds of a claim, in the order in which it took.
//   - pawl_job_held finds what the worker holds, which is sorted then.
var heldOfClaim = "SELECT " + jobs.LiveRow.Columns + `, begun
	FROM ` + jobs.Running + ` AND worker = ? AND claim = ?
	ORDER BY queue, priority, due, id`

var heldQueue = jobs.LiveRow.At("queue")

// claimedBy reads what a worker still holds of one of its claims, within the
// bound of the claim.
func claimedBy(t *jobs.Transition, c *store.Claim) ([]store.LeasedJob, error) {
	var held []store.LeasedJob
	bytes := map[string]int64{}
	q := t.On(heldOfClaim).Int(int64(c.Worker)).Int(c.Seq)
	for q.Step() {
		if bytes[q.ColText(heldQueue)] >= c.PerQueue() {
			continue
		}
		var l store.LeasedJob
		jobs.LiveRow.Read(q, &l.Job)
		l.Begun = q.ColBool(jobs.LiveRow.Len())
		bytes[l.Queue] += jobs.Large(&l.Job)
		held = append(held, l)
	}
	return held, q.Done()
}
