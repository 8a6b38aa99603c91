package claims

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// unservedQueues finds queues with waiting jobs between those that are served. It
// goes around the served ones, because at their front are the dead entries of
// what was claimed.
//
//   - job_ready and job_gated serve it: a seek for each queue.
const unservedQueues = `WITH RECURSIVE found AS (
	SELECT g.until, least((
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NULL AND job.queue > g.after AND job.queue < g.until
		ORDER BY job.queue
		LIMIT 1
	), (
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NOT NULL
			AND job.queue > g.after AND job.queue < g.until
		ORDER BY job.queue
		LIMIT 1
	)) AS queue
	FROM unnest($2::text[], $3::text[]) AS g (after, until)
	UNION ALL
	SELECT f.until, least((
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NULL AND job.queue > f.queue AND job.queue < f.until
		ORDER BY job.queue
		LIMIT 1
	), (
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NOT NULL
			AND job.queue > f.queue AND job.queue < f.until
		ORDER BY job.queue
		LIMIT 1
	))
	FROM found AS f
	WHERE f.queue IS NOT NULL
)
SELECT queue
FROM found
WHERE queue IS NOT NULL
LIMIT $4`

// readyHeads groups the first ready jobs of each queue and priority, and of each
// queue the first behind gates, as if they had a priority of their own (0).
//
//   - job_ready and job_gated serve it: a seek for each.
var readyHeads = `SELECT queue, kind, version, capabilities, sum(jobs)::bigint, max(jobs), min(oldest)
FROM (
	SELECT j.queue, j.kind, j.version, j.capabilities, count(*) AS jobs, min(j.due) AS oldest
	FROM (
		SELECT j.*
		FROM unnest($2::text[]) AS q (name)
		CROSS JOIN generate_series(0, 9) AS p (priority)
		CROSS JOIN LATERAL (
			(
				SELECT job.queue, job.kind, job.version, job.capabilities, job.due, job.priority
				FROM pawl.job
				WHERE job.namespace = $1
					AND job.state = 2
					AND job.gate IS NULL
					AND job.queue = q.name
					AND job.priority = p.priority
					AND job.due <= {now} - $3 * interval '1 microsecond'
				ORDER BY job.due, job.id
				LIMIT $4
			)
			UNION ALL
			(
				SELECT gated.queue, gated.kind, gated.version, gated.capabilities, gated.due, p.priority
				FROM (
					SELECT job.queue, job.kind, job.version, job.capabilities, job.due
					FROM pawl.job
					WHERE job.namespace = $1
						AND job.state = 2
						AND job.gate IS NOT NULL
						AND job.queue = q.name
						AND p.priority = 0
					ORDER BY job.gate, job.priority, job.due, job.id
					LIMIT $6
				) AS gated
				WHERE gated.due <= {now} - $3 * interval '1 microsecond'
				LIMIT $4
			)
		) AS j
		WHERE NOT ` + settings.QueuePaused("q.name") + `
		LIMIT $5
	) AS j
	GROUP BY j.queue, j.kind, j.version, j.capabilities, j.priority
) AS alike
GROUP BY queue, kind, version, capabilities`

// lastName comes after every name, by its bytes.
const lastName = "\U0010FFFF"

// Unserved finds jobs that no live worker takes.
func (r *Room) Unserved(ctx context.Context, by job.WorkerID, older time.Duration) ([]store.Unserved, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	if some, ok := r.meets.waiting.Do(ctx, r.pg.Namespace); ok && !some {
		return nil, nil
	}
	served := store.Served{}
	err := r.look(ctx, func() *pg.Statement {
		clear(served)
		return &pg.Statement{Text: workers.ServedQueues, Args: []any{r.pg.Namespace, by}, Each: func(scan pg.Scan) error {
			var name string
			var text []byte
			if err := scan(&name, &text); err != nil {
				return err
			}
			var offer job.Offer
			if json.Unmarshal(text, &offer) != nil {
				offer = job.Offer{} // that worker takes nothing, as far as anybody can tell (P8)
			}
			served[name] = append(served[name], offer)
			return nil
		}}
	})
	if err != nil || len(served) == 0 {
		return nil, err
	}
	var names []string
	for name := range served {
		names = append(names, name)
	}
	slices.Sort(names)
	after, until := append([]string{""}, names...), append(slices.Clone(names), lastName)
	var others []string
	err = r.look(ctx, func() *pg.Statement {
		others = nil
		return &pg.Statement{Text: unservedQueues, Args: []any{r.pg.Namespace, after, until, store.UnservedQueues}, Each: func(scan pg.Scan) error {
			var name string
			err := scan(&name)
			others = append(others, name)
			return err
		}}
	})
	if err != nil {
		return nil, err
	}
	var ready []store.Ready
	err = r.look(ctx, func() *pg.Statement {
		ready = nil
		args := []any{r.pg.Namespace, append(others, names...), older.Microseconds(), store.UnservedHead, store.UnservedLook, store.UnservedGated}
		return &pg.Statement{Text: readyHeads, Args: args, Each: func(scan pg.Scan) error {
			var heads store.Ready
			var oldest pgtype.Timestamptz
			var needs []pgtype.Text // one that is NULL was not written by us: it costs that job only
			err := scan(&heads.Queue, &heads.Kind, &heads.Version, &needs, &heads.Jobs, &heads.Most, &oldest)
			for _, n := range needs {
				heads.Capabilities = append(heads.Capabilities, n.String)
			}
			heads.Oldest = oldest.Time.UTC()
			ready = append(ready, heads)
			return err
		}}
	})
	if err != nil {
		return nil, err
	}
	return store.FindUnserved(ready, served), nil
}

// look is a read whose plan the store's settings decide.
func (r *Room) look(ctx context.Context, make func() *pg.Statement) error {
	return r.pg.Retry(ctx, "look for unserved jobs", pg.Reading, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits, make())
	})
}
