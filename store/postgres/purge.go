package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
)

// purges remembers how far the archive was purged, so that a purge does not step
// over the index entries of what the one before removed.
type purges struct {
	mu      sync.Mutex
	expires time.Time
	since   time.Time // when it began in front
	logs    job.ID    // how far lines were looked through
}

// purgeAnew is how often a purge begins in front again, for jobs whose end was
// committed late.
const purgeAnew = 10 * time.Minute

func (p *purges) from(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expires.IsZero() || now.Before(p.since) || now.Sub(p.since) > purgeAnew {
		p.expires, p.since = start.due, now
	}
	return p.expires
}

// forget makes the next purge begin in front.
func (p *purges) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expires = time.Time{}
}

func (p *purges) reached(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.After(p.expires) {
		p.expires = at
	}
}

// Each of these removes at most $2 rows whose time is over, by its index and
// without waiting for anybody.
var purgeTexts = []string{
	`DELETE FROM pawl.tombstone WHERE ctid = ANY (ARRAY(SELECT ctid FROM pawl.tombstone WHERE namespace = $1 AND expires > '-infinity' AND expires <= {now}
		ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED))`,
	`DELETE FROM pawl.job_unique WHERE ctid = ANY (ARRAY(SELECT ctid FROM pawl.job_unique WHERE namespace = $1 AND until IS NOT NULL AND until <= {now}
		ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED))`,
	`DELETE FROM pawl.audit WHERE ctid = ANY (ARRAY(SELECT ctid FROM pawl.audit WHERE namespace = $1 AND expires > '-infinity' AND expires <= {now}
		ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED))`,
	`UPDATE pawl.worker SET gone = true, drained = true WHERE ctid = ANY (ARRAY(SELECT ctid FROM pawl.worker AS w WHERE namespace = $1 AND NOT gone AND lost <= {now}
		AND (SELECT 1 FROM pawl.job WHERE job.namespace = $1 AND job.state = 3 AND job.worker = w.id LIMIT 1) IS NULL LIMIT $2 FOR UPDATE SKIP LOCKED))`,
}

// forgetWorkers removes the rows of workers that left a day ago.
const forgetWorkers = `DELETE FROM pawl.worker WHERE ctid = ANY (ARRAY(SELECT ctid FROM pawl.worker AS w WHERE namespace = $1 AND gone AND lost < {now} - interval '24 hours'
	AND (SELECT 1 FROM pawl.job WHERE job.namespace = $1 AND job.state = 3 AND job.worker = w.id LIMIT 1) IS NULL LIMIT $2 FOR UPDATE SKIP LOCKED))`

// purgeArchive removes archived jobs by job_archive_expires, with their logs.
const purgeArchive = `WITH late AS MATERIALIZED (
	SELECT ctid AS place FROM pawl.job_archive WHERE namespace = $1 AND state >= 5 AND expires >= $3 AND expires <= {now} ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
	DELETE FROM pawl.job_archive AS a USING late WHERE a.ctid = late.place RETURNING a.id, a.expires
), silenced AS (
	DELETE FROM pawl.job_log AS l USING gone WHERE l.namespace = $1 AND l.job = gone.id
)
SELECT count(*), max(expires) FROM gone`

// purgeLogs removes lines of jobs that are gone. They go with their job, but a
// note that was under way when it went commits after it. Each purge looks at the
// next stretch of job_log_pkey.
const purgeLogs = `WITH part AS MATERIALIZED (
	SELECT DISTINCT l.job FROM (SELECT job FROM pawl.job_log WHERE namespace = $1 AND job > $2 ORDER BY job LIMIT $3) AS l
), gone AS (
	DELETE FROM pawl.job_log AS l USING (SELECT $1::int AS namespace, part.job FROM part OFFSET 0) AS e WHERE l.namespace = e.namespace AND l.job = e.job
		AND NOT EXISTS (SELECT FROM pawl.job AS j WHERE j.namespace = e.namespace AND j.id = e.job)
		AND NOT EXISTS (SELECT FROM pawl.job_archive AS a WHERE a.namespace = e.namespace AND a.id = e.job)
)
SELECT job FROM part ORDER BY job DESC LIMIT 1`

func (p *purges) lines() job.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logs
}

// looked notes how far; zero means from the start.
func (p *purges) looked(at job.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logs = at
}

// Purge removes up to limit rows of each kind whose time is over. It needs no
// more rights than to delete rows.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	now, err := s.now(ctx)
	if err != nil {
		return 0, err
	}
	purged := int64(0)
	err = s.retry(ctx, "purge", always, func(ctx context.Context, _ bool) error {
		purged = 0
		var reached *time.Time
		steps := []*step{{text: purgeArchive, args: []any{s.namespace, limit, s.purges.from(now)}, each: func(scan scan) error {
			return scan(&purged, &reached)
		}}}
		for _, text := range purgeTexts {
			steps = append(steps, &step{text: text, args: []any{s.namespace, limit}})
		}
		counted := steps[1:]
		steps = append(steps, &step{text: forgetWorkers, args: []any{s.namespace, limit}})
		var looked job.ID
		steps = append(steps, &step{text: purgeLogs, args: []any{s.namespace, s.purges.lines(), limit}, each: func(scan scan) error { return scan(&looked) }})
		if err := s.send(ctx, s.reserved, upkeepLimits, steps...); err != nil {
			return err
		}
		for _, st := range counted {
			purged += st.hits
		}
		s.purges.looked(looked)
		if reached != nil {
			s.purges.reached(*reached)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return int(purged), nil
}

// KeepTombstone is written out in tombstoneLife; this line does not compile when
// they part.
const _ = uint(24*time.Hour-job.KeepTombstone) + uint(job.KeepTombstone-24*time.Hour)
