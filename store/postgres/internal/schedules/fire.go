package schedules

import (
	"context"
	"errors"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// given are the firings of a call; $2 is the revision that they were computed from.
const given = `SELECT $1::int AS namespace, e.*
	FROM unnest(
		$3::text[], $4::boolean[], $5::timestamptz[], $6::text[], $7::text[],
		$8::timestamptz[], $9::timestamptz[], $10::timestamptz[]
	) AS e (name, new, was, cron, zone, anchor, next, last)
	OFFSET 0`

// moveStates moves those on whose state and revision are still what they were
// computed from. A row that somebody holds is being moved by them.
//
//   - schedule_pkey finds them, namespace_pkey the revision.
const moveStates = `WITH given AS MATERIALIZED (
	` + given + `
), added AS (
	INSERT INTO pawl.schedule (namespace, name, revision, anchor, next, last, expires, cron, zone)
	SELECT g.namespace, g.name, $2, g.anchor, g.next, g.last,
		greatest({now}, g.next, g.last) + $11::bigint * interval '1 second', g.cron, g.zone
	FROM given AS g
	WHERE g.new AND ` + settings.Revision + ` = $2
	ORDER BY g.name
	ON CONFLICT DO NOTHING
	RETURNING name
), held AS MATERIALIZED (
	SELECT s.namespace, s.name
	FROM given AS g
	JOIN pawl.schedule AS s ON s.namespace = g.namespace AND s.name = g.name
	WHERE NOT g.new
		AND s.next IS NOT DISTINCT FROM g.was
		AND s.revision <= $2
		AND ` + settings.Revision + ` = $2
	ORDER BY s.name
	FOR UPDATE OF s SKIP LOCKED
), moved AS (
	UPDATE pawl.schedule AS s
	SET revision = $2, anchor = g.anchor, next = g.next, last = coalesce(g.last, s.last),
		expires = greatest({now}, g.next, g.last) + $11::bigint * interval '1 second', cron = g.cron, zone = g.zone
	FROM held AS h
	JOIN given AS g ON g.name = h.name
	WHERE s.namespace = h.namespace AND s.name = h.name
	RETURNING s.name
)
SELECT name
FROM added
UNION ALL
SELECT name
FROM moved`

// countJobs notes what was accepted.
//
//   - schedule_pkey finds the rows, which this transaction holds.
const countJobs = `UPDATE pawl.schedule AS s
SET last_job = e.job, fires = fires + e.fired, skips = skips + e.skipped
FROM (
	SELECT $1::int AS namespace, e.*
	FROM unnest($2::text[], $3::uuid[], $4::bigint[], $5::bigint[]) AS e (name, job, fired, skipped)
	OFFSET 0
) AS e
WHERE s.namespace = e.namespace AND s.name = e.name`

const dropState = `DELETE FROM pawl.schedule
WHERE namespace = $1 AND name = $2`

// Fire moves schedules on, each with the jobs of its due times, in one transaction.
func (r *Room) Fire(ctx context.Context, revision int64, list []store.Firing) (fired []store.Fired, err error) {
	unknown := false
	defer func() { // of those that did not begin, or of which nobody knows
		for i := range list {
			job.SettleHandOvers(list[i].Jobs, job.HandedOver{Unknown: unknown || errors.Is(err, job.ErrOutcomeUnknown)})
		}
	}()
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	var accepted jobs.Accepted
	var blocked error // by a transaction that holds a unique key: its caller goes on without this one
	err = r.pg.Retry(ctx, "fire schedules", pg.Always, func(ctx context.Context, again bool) error {
		fired, accepted, unknown = make([]store.Fired, len(list)), jobs.Accepted{}, again
		err := r.pg.Transact(ctx, r.pg.Upkeep, pg.SharedLimits, func(t *pg.Transaction) error {
			if err := t.Run(ctx, r.move(revision, list, fired)); err != nil {
				return err
			}
			var drafts []job.Draft
			for i := range list {
				if fired[i].Moved {
					drafts = append(drafts, list[i].Drafts()...)
				}
			}
			var err error
			accepted, err = r.jobs.Accept(ctx, t, drafts)
			if err != nil || len(drafts) == 0 {
				return err
			}
			return t.Run(ctx, r.count(list, fired, accepted.Receipts))
		})
		if blocked = nil; err != nil && pg.FaultOf(err).Blocked && !again { // again: it may be an earlier try that holds it
			blocked = err
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if blocked != nil {
		return nil, pg.Failure("fire schedules", pg.FaultOf(blocked).Err, false)
	}
	accepted.Settle()
	r.hints.Tell(accepted.Told)
	if unknown { // an earlier try may have put them in, and told nobody
		for i := range list {
			for j := range list[i].Jobs {
				r.hints.LookAt(list[i].Jobs[j].Queue)
			}
		}
	}
	return fired, nil
}

func (r *Room) move(revision int64, list []store.Firing, fired []store.Fired) *pg.Statement {
	at := make(map[string]int, len(list))
	var names, crons, zones []string
	var fresh []bool
	var was, anchors, nexts, lasts []*time.Time
	for i := range list {
		f := &list[i]
		at[f.Name] = i
		names, crons, zones, fresh = append(names, f.Name), append(crons, f.Cron), append(zones, f.Zone), append(fresh, f.New)
		was, anchors, nexts, lasts = append(was, orNull(f.Was)), append(anchors, &f.Anchor), append(nexts, orNull(f.Next)), append(lasts, orNull(f.Last))
	}
	return &pg.Statement{
		Text: moveStates,
		Args: []any{r.pg.Namespace, revision, names, fresh, was, crons, zones, anchors, nexts, lasts, int64(store.KeepSchedule / time.Second)},
		Each: func(scan pg.Scan) error {
			var name string
			err := scan(&name)
			fired[at[name]].Moved = true
			return err
		},
	}
}

// count hands the receipts out, and notes what they come to.
func (r *Room) count(list []store.Firing, fired []store.Fired, receipts []job.Receipt) *pg.Statement {
	var names []string
	var ids [][16]byte
	var fires, skips []int64
	for i := range list {
		n := len(list[i].Jobs)
		if !fired[i].Moved || n == 0 {
			continue
		}
		fired[i].Receipts, receipts = receipts[:n:n], receipts[n:]
		f, s, last := fired[i].Counts()
		names, ids, fires, skips = append(names, list[i].Name), append(ids, last), append(fires, f), append(skips, s)
	}
	return &pg.Statement{Text: countJobs, Args: []any{r.pg.Namespace, names, ids, fires, skips}}
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Trigger accepts a job beside the due times, with its audit entry.
func (r *Room) Trigger(ctx context.Context, name string, draft job.Draft, op store.Operator) (receipt job.Receipt, err error) {
	if err := r.pg.Enter(ctx); err != nil {
		return receipt, err
	}
	defer r.pg.Leave()
	var told hints.Set
	err = r.pg.Retry(ctx, store.TriggerAction, pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Upkeep, pg.UpkeepLimits, func(t *pg.Transaction) error {
			receipts, tell, err := r.jobs.EnqueueIn(ctx, t, []job.Draft{draft})
			if err != nil {
				return err
			}
			receipt, told = receipts[0], tell
			return r.settings.Record(ctx, t, op, store.TriggerAction, []string{name}, []string{"job " + receipt.ID.String()})
		})
	})
	if err != nil {
		return job.Receipt{ID: draft.ID}, err
	}
	r.hints.Tell(told)
	return receipt, nil
}

// Forget removes a state.
func (r *Room) Forget(ctx context.Context, name string) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	return r.pg.Retry(ctx, "forget a schedule", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits, &pg.Statement{Text: dropState, Args: []any{r.pg.Namespace, name}})
	})
}
