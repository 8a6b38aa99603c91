package sqlite

import "github.com/pawlwork/pawl/store"

// claimedBy reads what a worker still holds of one of its claims, within the
// bound of the claim.
func claimedBy(t *transition, c *store.Claim) ([]store.LeasedJob, error) {
	var held []store.LeasedJob
	bytes := map[string]int64{}
	q := t.On("SELECT " + liveColumns + ", begun FROM " + running + " AND worker = ? AND claim = ? ORDER BY queue, priority, due, id").
		Int(int64(c.Worker)).Int(c.Seq)
	for q.Step() {
		if bytes[q.ColText(15)] >= c.PerQueue() {
			continue
		}
		var l store.LeasedJob
		readJob(q, &l.Job)
		l.Begun = q.ColBool(columnCount)
		bytes[l.Queue] += large(&l.Job)
		held = append(held, l)
	}
	return held, q.Done()
}
