package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Defaults of a check.
const (
	checkGrace = time.Minute
	checkStep  = 10_000
	// maxFaults bounds a report: who has a thousand faults needs no more of them.
	maxFaults = 1000
)

// Each look covers one stretch of a table in one statement, which is one
// snapshot: what it finds broken was broken at that moment, in all tables at once.
const (
	checkLive = `WITH part AS MATERIALIZED (SELECT * FROM pawl.job WHERE namespace = $1 AND id > $2 ORDER BY id LIMIT $3)
SELECT NULL::text, (SELECT id FROM part ORDER BY id DESC LIMIT 1), (SELECT count(*) FROM part)::text
UNION ALL SELECT 'job in two places', p.id, 'live and archived' FROM part AS p JOIN pawl.job_archive AS a ON a.namespace = p.namespace AND a.id = p.id
UNION ALL SELECT 'live state', id, 'state ' || state FROM part WHERE state NOT BETWEEN 1 AND 4
UNION ALL SELECT 'worker only while running', id, 'state ' || state || ', worker ' || coalesce(worker::text, 'none') FROM part
	WHERE (state = 3) <> (worker IS NOT NULL) OR (state = 3) <> (claim IS NOT NULL) OR state <> 3 AND (begun OR cancel)
UNION ALL SELECT 'run without a live worker', p.id, 'run ' || p.run || ' of worker ' || p.worker || CASE WHEN w.id IS NULL THEN ', which is not registered' ELSE ', lost since ' || w.lost END
	FROM part AS p LEFT JOIN pawl.worker AS w ON w.namespace = p.namespace AND w.id = p.worker
	WHERE p.state = 3 AND (w.id IS NULL AND p.started < {now} - $4 * interval '1 microsecond' OR w.lost < {now} - $4 * interval '1 microsecond')
UNION ALL SELECT 'unique key of a live job', p.id, CASE WHEN u.job IS NULL THEN 'its key has no row' ELSE 'its key is held by ' || u.job END
	FROM part AS p LEFT JOIN pawl.job_unique AS u ON u.namespace = p.namespace AND u.hash = p.unique_hash
	WHERE p.unique_hash IS NOT NULL AND (u.job IS NULL OR u.job <> p.id OR u.until IS NOT NULL)`

	checkArchived = `WITH part AS MATERIALIZED (SELECT * FROM pawl.job_archive WHERE namespace = $1 AND id > $2 ORDER BY id LIMIT $3)
SELECT NULL::text, (SELECT id FROM part ORDER BY id DESC LIMIT 1), (SELECT count(*) FROM part)::text
UNION ALL SELECT 'archived state', id, 'state ' || state FROM part WHERE state NOT BETWEEN 5 AND 8
UNION ALL SELECT 'expiry after the end', id, 'finished ' || finished || ', expires ' || expires FROM part WHERE expires < finished`

	// Hashes stand in for ids here; the job they name is reported.
	checkUnique = `WITH part AS MATERIALIZED (SELECT * FROM pawl.job_unique WHERE namespace = $1 AND hash > $2 ORDER BY hash LIMIT $3)
SELECT NULL::text, NULL::uuid, (SELECT hash FROM part ORDER BY hash DESC LIMIT 1)
UNION ALL SELECT 'unique key without its job', p.job, NULL FROM part AS p LEFT JOIN pawl.job AS j ON j.namespace = p.namespace AND j.id = p.job
	WHERE p.until IS NULL AND (j.id IS NULL OR j.unique_hash IS DISTINCT FROM p.hash)`
)

// Check looks for broken rules (P6) in short snapshots and changes nothing.
func (s *Store) Check(ctx context.Context, c store.Check) (store.CheckReport, error) {
	if err := s.enter(ctx); err != nil {
		return store.CheckReport{}, err
	}
	defer s.leave()
	if c.Grace == 0 {
		c.Grace = checkGrace
	}
	if c.Step == 0 {
		c.Step = checkStep
	}
	k := &checking{s: s, c: c}
	if err := k.table(ctx, checkLive, &k.report.Live, c.Grace.Microseconds()); err != nil {
		return store.CheckReport{}, err
	}
	if err := k.table(ctx, checkArchived, &k.report.Archived); err != nil {
		return store.CheckReport{}, err
	}
	if err := k.keys(ctx); err != nil {
		return store.CheckReport{}, err
	}
	return k.report, nil
}

type checking struct {
	s      *Store
	c      store.Check
	report store.CheckReport
}

func (k *checking) fault(rule string, id pgtype.UUID, detail string) {
	if len(k.report.Faults) < maxFaults {
		k.report.Faults = append(k.report.Faults, store.Fault{Rule: rule, ID: job.ID(id.Bytes), Detail: detail})
	}
}

// table walks through a table of jobs by id.
func (k *checking) table(ctx context.Context, text string, count *int64, more ...any) error {
	var last job.ID
	for {
		var end pgtype.UUID
		var rows int64
		var found []store.Fault
		err := k.s.retry(ctx, "check", reading, func(ctx context.Context, _ bool) error {
			found, rows = nil, 0
			return k.s.send(ctx, k.s.work, upkeepLimits, &step{text: text, args: append([]any{k.s.namespace, [16]byte(last), k.c.Step}, more...), each: func(scan scan) error {
				var rule pgtype.Text
				var id pgtype.UUID
				var detail string
				if err := scan(&rule, &id, &detail); err != nil {
					return err
				}
				if !rule.Valid {
					end = id
					_, err := fmt.Sscan(detail, &rows)
					return err
				}
				found = append(found, store.Fault{Rule: rule.String, ID: job.ID(id.Bytes), Detail: detail})
				return nil
			}})
		})
		if err != nil {
			return err
		}
		*count += rows
		for _, f := range found {
			k.fault(f.Rule, pgtype.UUID{Bytes: f.ID}, f.Detail)
		}
		if rows < int64(k.c.Step) {
			return nil
		}
		last = job.ID(end.Bytes)
	}
}

// keys walks through the unique keys.
func (k *checking) keys(ctx context.Context) error {
	last := []byte{}
	for last != nil {
		var end []byte
		var found []store.Fault
		err := k.s.retry(ctx, "check", reading, func(ctx context.Context, _ bool) error {
			found, end = nil, nil
			return k.s.send(ctx, k.s.work, upkeepLimits, &step{text: checkUnique, args: []any{k.s.namespace, last, k.c.Step}, each: func(scan scan) error {
				var rule pgtype.Text
				var id pgtype.UUID
				var hash []byte
				if err := scan(&rule, &id, &hash); err != nil {
					return err
				}
				if !rule.Valid {
					end = hash
					return nil
				}
				found = append(found, store.Fault{Rule: rule.String, ID: job.ID(id.Bytes), Detail: "a key is held by a job that is not live or has another key"})
				return nil
			}})
		})
		if err != nil {
			return err
		}
		for _, f := range found {
			k.fault(f.Rule, pgtype.UUID{Bytes: f.ID}, f.Detail)
		}
		last = end
	}
	return nil
}
