package claims

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// claimAgain answers a claim that was asked for before.
func (r *Room) claimAgain(ctx context.Context, c *store.Claim) (claimed store.ClaimReply, err error) {
	err = r.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, _ bool) (err error) {
		claimed, err = r.claimedBefore(ctx, c)
		return err
	})
	return claimed, err
}

// awaitClaims locks the worker's row against its own claims, which hold it FOR
// SHARE: a claim whose connection was lost may still be under way on the server,
// and is waited for.
//
//   - worker_pkey finds the row.
const awaitClaims = `SELECT {now}, ` + settings.Revision + `, (
	SELECT count(*)
	FROM (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL FOR UPDATE) AS me
) > 0`

// claimHeld reads what the worker still holds of a claim, in the order in which it
// was claimed and no more than fits.
//
//   - job_held finds the jobs.
var claimHeld = "SELECT " + jobs.LiveColumns + `, begun
FROM (
	SELECT job.*,
		sum(` + jobs.RowBytes + `) OVER (PARTITION BY queue ORDER BY priority, due, id)
			- (` + jobs.RowBytes + `) AS before
	FROM pawl.job
	WHERE namespace = $1 AND state = 3 AND worker = $2 AND claim = $3
) AS held
WHERE before < $4
ORDER BY queue, priority, due, id`

// claimedBefore reads what a worker still holds of one of its claims.
func (r *Room) claimedBefore(ctx context.Context, c *store.Claim) (store.ClaimReply, error) {
	claimed := store.ClaimReply{More: true} // how much was left is not known any more
	var rows jobs.RowReader
	alive := false
	steps := []*pg.Statement{
		{Text: awaitClaims, Args: []any{r.pg.Namespace, c.Worker}, Each: func(scan pg.Scan) error { return scan(&claimed.Now, &claimed.Revision, &alive) }},
		{Text: claimHeld, Args: []any{r.pg.Namespace, c.Worker, c.Seq, c.PerQueue()}, Raw: func(cols [][]byte) error {
			claimed.Jobs = append(claimed.Jobs, store.LeasedJob{})
			l := &claimed.Jobs[len(claimed.Jobs)-1]
			if err := rows.Job(cols, &l.Job); err != nil {
				return err
			}
			l.Begun = rows.Bool()
			return rows.Err
		}},
	}
	if len(c.Begun) > 0 {
		steps = append(steps, r.workers.BegunStep(c.Worker, c.Begun))
	}
	if err := r.pg.Send(ctx, r.pg.Reserved, pg.UpkeepLimits, steps...); err != nil {
		return store.ClaimReply{}, err
	}
	claimed.Now = claimed.Now.UTC()
	if !alive {
		r.workers.Asked.Forget(c.Worker)
		return store.ClaimReply{}, fmt.Errorf("worker %d: %w", c.Worker, job.ErrWorkerLost)
	}
	return claimed, nil
}
