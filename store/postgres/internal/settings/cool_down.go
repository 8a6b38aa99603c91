package settings

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// coolDownRuns is job.CoolDown.Running for a row.
const coolDownRuns = "until > {now} AND since <= {now} + interval '10 seconds'"

// CoolsUntil is when the cool-down of a queue ends, NULL when none is running, as a
// part of other statements.
//
//   - cool_down_pkey: one seek, once in a statement.
func CoolsUntil(queue string) string {
	return `(SELECT until FROM pawl.cool_down WHERE namespace = $1 AND queue = ` + queue + ` AND ` + coolDownRuns + `)`
}

// CoolingQueues are those of the queues of an array that cool down, with their ends:
// one row with two arrays, NULL for none.
//
//   - cool_down_pkey: one seek for each.
func CoolingQueues(queues string) string {
	return `SELECT array_agg(queue) AS queues, array_agg(until) AS untils
	FROM pawl.cool_down
	WHERE namespace = $1 AND queue = ANY (` + queues + `) AND ` + coolDownRuns
}

// CoolingNames are those of the queues of an array that cool down, as rows.
//
//   - cool_down_pkey: one seek for each.
func CoolingNames(queues string) string {
	return `SELECT queue
		FROM pawl.cool_down
		WHERE namespace = $1 AND queue = ANY (` + queues + `) AND ` + coolDownRuns
}

// CoolingOf are those of the queues p (namespace, queue, n) that cool down, as rows.
//
//   - cool_down_pkey: one seek for each.
const CoolingOf = `JOIN pawl.cool_down AS c ON c.namespace = p.namespace AND c.queue = p.queue
WHERE c.` + "until > {now} AND c.since <= {now} + interval '10 seconds'"

// What a throttle reads and writes (cool_down_pkey). The row is made before it is
// locked, and the time is read after that: who waited for the lock comes later.
const (
	makeCoolDown = `INSERT INTO pawl.cool_down (namespace, queue, since, until, throttles)
VALUES ($1, $2, 'epoch', 'epoch', 0)
ON CONFLICT DO NOTHING`

	lockCoolDown = `SELECT since, until, throttles
FROM pawl.cool_down
WHERE namespace = $1 AND queue = $2
FOR UPDATE`

	setCoolDown = `UPDATE pawl.cool_down
SET since = $3, until = $4, throttles = $5
WHERE namespace = $1 AND queue = $2`

	endCoolDown = `DELETE FROM pawl.cool_down
WHERE namespace = $1 AND queue = $2`

	// forgetCoolDowns removes some that were over a day ago (job.KeepCoolDown), without
	// waiting for anybody: more than one that begins adds.
	//
	//   - cool_down_until finds them.
	forgetCoolDowns = `DELETE FROM pawl.cool_down
WHERE ctid = ANY (ARRAY(
	SELECT ctid
	FROM pawl.cool_down
	WHERE namespace = $1 AND until < {now} - interval '24 hours'
	ORDER BY until
	LIMIT 10
	FOR UPDATE SKIP LOCKED
))`

	// allCoolDowns lists those that are running (cool_down_until).
	allCoolDowns = `SELECT queue, since, until, throttles
FROM pawl.cool_down
WHERE namespace = $1 AND ` + coolDownRuns + `
ORDER BY until`
)

// CoolDown tells that a handler of a queue was throttled.
func (r *Room) CoolDown(ctx context.Context, queue string, throttle job.Throttle) (reply store.CoolDownReply, err error) {
	if err := job.CheckName("queue", queue); err != nil {
		return reply, err
	}
	if err := r.pg.Enter(ctx); err != nil {
		return reply, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "cool down", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			was, now := job.CoolDown{Queue: queue}, time.Time{}
			key := []any{r.pg.Namespace, queue}
			err := t.Run(ctx,
				&pg.Statement{Text: makeCoolDown, Args: key},
				&pg.Statement{Text: lockCoolDown, Args: key, Each: func(scan pg.Scan) error {
					return scan(&was.Since, &was.Until, &was.Throttles)
				}},
				&pg.Statement{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(&now) }})
			if err != nil {
				return err
			}
			was.Since, was.Until = was.Since.UTC(), was.Until.UTC()
			next, began := was.Throttled(throttle, now.UTC())
			reply = store.CoolDownReply{CoolDown: next, Left: next.Until.Sub(now), Began: began}
			if next == was {
				return nil
			}
			change := []*pg.Statement{{Text: setCoolDown, Args: append(key, next.Since, next.Until, next.Throttles)}}
			if began {
				change = append(change, &pg.Statement{Text: forgetCoolDowns, Args: key[:1]})
			}
			return t.Run(ctx, change...)
		})
	})
	return reply, err
}

// ResetCoolDown ends the cool-down of a queue. The revision rises, so that processes
// that sleep it out hear of it.
func (r *Room) ResetCoolDown(ctx context.Context, queue string, op store.Operator) error {
	if err := job.CheckName("queue", queue); err != nil {
		return err
	}
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	err := r.pg.Retry(ctx, store.CoolDownAction, pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			end := &pg.Statement{Text: endCoolDown, Args: []any{r.pg.Namespace, queue}}
			if err := t.Run(ctx, end); err != nil {
				return err
			}
			if end.Hits > 0 {
				if err := t.Run(ctx, r.raise()); err != nil {
					return err
				}
			}
			return r.Record(ctx, t, op, store.CoolDownAction, []string{queue}, []string{""})
		})
	})
	if err != nil {
		return err
	}
	r.hints.LookAt(queue)
	r.hints.Notifier.Settings()
	return nil
}

// CoolDownsStep lists the cool-downs that are running.
func (r *Room) CoolDownsStep(list *[]job.CoolDown) *pg.Statement {
	return &pg.Statement{Text: allCoolDowns, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
		var c job.CoolDown
		err := scan(&c.Queue, &c.Since, &c.Until, &c.Throttles)
		c.Since, c.Until = c.Since.UTC(), c.Until.UTC()
		*list = append(*list, c)
		return err
	}}
}
