package jobs

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// purges remembers how far the archive was purged, so that a purge does not step
// over the index entries of what the one before removed.
type purges struct {
	mu      sync.Mutex
	expires time.Time
	since   time.Time // when it began in front
	now     time.Time // the store's, as a purge or a look told it last
	logs    linePlace // how far lines were looked through
}

// linePlace is a place in job_log_pkey.
type linePlace struct {
	job  job.ID
	line int64
}

// purgeAnew is how often a purge begins in front again, for jobs whose end was
// committed late.
const purgeAnew = 10 * time.Minute

func (p *purges) from(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fromLocked(now)
}

// forLook is where a look begins. It asks for the time only as it looks, so the
// answer before tells it whether to begin in front.
func (p *purges) forLook() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fromLocked(p.now)
}

// heard notes the store's time.
func (p *purges) heard(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

func (p *purges) fromLocked(now time.Time) time.Time {
	p.now = now
	if p.expires.IsZero() || now.Before(p.since) || now.Sub(p.since) > purgeAnew {
		p.expires, p.since = LongAgo, now
	}
	return p.expires
}

// Forget makes the next purge begin in front.
func (p *purges) Forget() {
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

// leaveWorkers marks workers as gone that are lost and hold nothing, at most $2 and
// without waiting for anybody.
//
//   - worker_lost finds them, job_held what they hold.
const leaveWorkers = `UPDATE pawl.worker
SET gone = true, drained = true
WHERE ctid = ANY (ARRAY(
	SELECT ctid
	FROM pawl.worker AS w
	WHERE namespace = $1
		AND NOT gone
		AND lost IS NOT NULL
		AND id > 0
		AND lost <= {now}
		AND ` + workers.HoldsNothing + `
	ORDER BY lost
	LIMIT $2
	FOR UPDATE SKIP LOCKED
))`

// forgetWorkers removes the rows of workers that left a day ago.
//
//   - worker_lost finds them, job_held what they hold.
const forgetWorkers = `DELETE FROM pawl.worker
WHERE ctid = ANY (ARRAY(
	SELECT ctid
	FROM pawl.worker AS w
	WHERE namespace = $1
		AND gone
		AND lost IS NOT NULL
		AND id > 0
		AND lost < {now} - interval '24 hours'
		AND ` + workers.HoldsNothing + `
	ORDER BY lost
	LIMIT $2
	FOR UPDATE SKIP LOCKED
))`

// purgeArchive removes archived jobs with their logs: lines first, the newest
// before the others, and at most $4 of them. Jobs go in the order of their expiry
// up to the one at which the lines ended, which stays for another time.
//
//   - job_archive_expires finds the jobs, job_log_pkey their lines.
const purgeArchive = `WITH late AS MATERIALIZED (
	SELECT ctid AS place, id, expires, ties
	FROM pawl.job_archive
	WHERE namespace = $1 AND state >= 5 AND expires >= $3 AND expires <= {now}
	ORDER BY expires
	LIMIT $2
	FOR UPDATE SKIP LOCKED
), counted AS MATERIALIZED (
	SELECT place, id, ties, row_number() OVER (ORDER BY expires, id) AS n
	FROM late
), lines AS MATERIALIZED (
	SELECT l.place, c.n
	FROM (SELECT $1::int AS namespace, id, n FROM counted WHERE ties & 2 <> 0 ORDER BY n OFFSET 0) AS c
	CROSS JOIN LATERAL (
		SELECT ctid AS place
		FROM pawl.job_log AS l
		WHERE l.namespace = ANY (ARRAY[c.namespace]) AND l.job = c.id
		ORDER BY line DESC
		LIMIT $4
	) AS l
	ORDER BY c.n
	LIMIT $4
), silenced AS (
	DELETE FROM pawl.job_log
	WHERE ctid = ANY (ARRAY(SELECT place FROM lines))
), gone AS (
	DELETE FROM pawl.job_archive AS a
	USING counted AS c
	WHERE a.ctid = c.place
		AND c.n < (SELECT CASE WHEN count(*) < $4 THEN 9223372036854775807 ELSE max(n) END FROM lines)
	RETURNING a.expires
)
SELECT count(*), max(expires), (SELECT count(*) FROM lines)
FROM gone`

// purgeLogs removes lines of jobs that are gone. They go with their job as far as
// its transaction may (deleteLogsGone), and a note that was under way when it went
// commits after it. Each purge looks at the next stretch, of $4 lines. It answers
// where that ended (behind the last line of a job that is there) and how many
// lines it removed.
//
//   - job_log_pkey gives the stretch; job_pkey and job_archive_pkey find the jobs.
const purgeLogs = `WITH part AS MATERIALIZED (
	SELECT ctid AS place, job, line
	FROM pawl.job_log
	WHERE namespace = $1 AND (job, line) > ($2, $3)
	ORDER BY job, line
	LIMIT $4
), nobody AS MATERIALIZED (
	SELECT e.job
	FROM (SELECT DISTINCT $1::int AS namespace, job FROM part OFFSET 0) AS e
	WHERE (SELECT 1 FROM pawl.job AS j WHERE j.namespace = e.namespace AND j.id = e.job LIMIT 1) IS NULL
		AND (SELECT 1 FROM pawl.job_archive AS a WHERE a.namespace = e.namespace AND a.id = e.job LIMIT 1) IS NULL
), gone AS (
	DELETE FROM pawl.job_log
	WHERE ctid = ANY (ARRAY(SELECT place FROM part WHERE job IN (SELECT job FROM nobody)))
	RETURNING 1
)
SELECT job,
	CASE WHEN job IN (SELECT job FROM nobody) THEN line ELSE 9223372036854775807 END,
	(SELECT count(*) FROM gone)
FROM part
ORDER BY job DESC, line DESC
LIMIT 1`

func (p *purges) lines() linePlace {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logs
}

// looked notes how far; zero means from the start.
func (p *purges) looked(at linePlace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logs = at
}

// lookDue says whether there is something to expire, to purge, and to roll up: of the
// tables that are simply purged, and of the others. Lines of jobs that are gone have no
// index of their own: where there are lines at all, a purge looks through some of
// them.
//
// The order is what chooses the index: EXISTS would have the planner take any that
// begins with the namespace.
//
//   - job_deadline, and for each table the index of its expiry: a seek for the first.
//   - worker_lost and job_held for workers, code_version_ended, job_log_pkey for lines.
func lookDue(expiring []table.Table, asks []Ask) string {
	text := `SELECT {now}, (
	SELECT 1` + fromLate + `
	ORDER BY deadline
	LIMIT 1
) IS NOT NULL, (
	SELECT 1
	FROM pawl.job_archive
	WHERE namespace = $1 AND state >= 5 AND expires >= $2 AND expires <= {now}
	ORDER BY expires
	LIMIT 1
) IS NOT NULL OR (
	SELECT 1
	FROM pawl.worker AS w
	WHERE namespace = $1
		AND NOT gone
		AND lost IS NOT NULL
		AND id > 0
		AND lost <= {now}
		AND ` + workers.HoldsNothing + `
	ORDER BY lost
	LIMIT 1
) IS NOT NULL OR (
	SELECT 1
	FROM pawl.worker AS w
	WHERE namespace = $1
		AND gone
		AND lost IS NOT NULL
		AND id > 0
		AND lost < {now} - interval '24 hours'
		AND ` + workers.HoldsNothing + `
	ORDER BY lost
	LIMIT 1
) IS NOT NULL OR ` + settings.VersionsDue + ` OR (
	SELECT 1
	FROM pawl.job_log
	WHERE namespace = $1 AND job > '00000000-0000-0000-0000-000000000000'
	ORDER BY job
	LIMIT 1
) IS NOT NULL`
	for _, t := range expiring {
		text += " OR (\n\t" + pg.ExpiredText(&t) + "\n) IS NOT NULL"
	}
	for _, a := range asks {
		text += ", (\n\t" + a.Text + "\n) IS NOT NULL"
	}
	return text
}

// Ask is what a later room asks with the look for what is due.
type Ask struct {
	Text string // finds a row of the namespace ($1) where there is something to do
	Set  func(*store.Due, bool)
	// Indexes serve it.
	Indexes []string
}

// columns are where those of a look go: its own, and those of the asks.
func (d *dueAnswer) columns(asks []Ask) (columns []any, set func()) {
	columns = []any{&d.now, &d.Expire, &d.Purge}
	found := make([]bool, len(asks))
	for i := range found {
		columns = append(columns, &found[i])
	}
	return columns, func() {
		for i, a := range asks {
			a.Set(&d.Due, found[i])
		}
	}
}

type dueAsk struct {
	namespace int32
	since     time.Time // where the look at the archive begins
}

type dueAnswer struct {
	store.Due
	now time.Time
}

// lookDueAll is lookDue for many namespaces, by the same indexes.
func lookDueAll(expiring []table.Table, asks []Ask) string {
	return `SELECT e.n, d.*
FROM (
	SELECT e.*
	FROM unnest($1::int[], $2::timestamptz[]) WITH ORDINALITY AS e (namespace, since, n)
	OFFSET 0
) AS e
CROSS JOIN LATERAL (` + strings.NewReplacer("$1", "e.namespace", "$2", "e.since").Replace(lookDue(expiring, asks)) + `) AS d`
}

func lookForDue(text string, asks []Ask) func(of []dueAsk, answers []*dueAnswer) []*pg.Statement {
	return func(of []dueAsk, answers []*dueAnswer) []*pg.Statement {
		namespaces, since := make([]int32, len(of)), make([]time.Time, len(of))
		for i, a := range of {
			namespaces[i], since[i] = a.namespace, a.since
		}
		return []*pg.Statement{{Text: text, Args: []any{namespaces, since}, Each: func(scan pg.Scan) error {
			var n int
			var a dueAnswer
			columns, set := a.columns(asks)
			if err := scan(append([]any{&n}, columns...)...); err != nil {
				return err
			}
			set()
			answers[n-1] = &a
			return nil
		}}}
	}
}

// Due says which rounds have something to do. What later rooms ask goes along.
func (r *Room) Due(ctx context.Context, also ...*pg.Statement) (due store.Due, err error) {
	if err := r.pg.Enter(ctx); err != nil {
		return due, err
	}
	defer r.pg.Leave()
	if len(also) == 0 {
		if met, ok := r.meets.due.Do(ctx, dueAsk{r.pg.Namespace, r.Purges.forLook()}); ok {
			r.Purges.heard(met.now)
			return met.Due, nil
		}
	}
	var found dueAnswer
	err = r.pg.Retry(ctx, "look for what is due", pg.Reading, func(ctx context.Context, _ bool) error {
		columns, set := found.columns(r.Asks)
		look := &pg.Statement{
			Text: r.lookDue, Args: []any{r.pg.Namespace, r.Purges.forLook()},
			Each: func(scan pg.Scan) error {
				err := scan(columns...)
				set()
				return err
			},
		}
		return r.pg.Send(ctx, r.pg.Upkeep, pg.SharedLimits, append([]*pg.Statement{look}, also...)...)
	})
	if err != nil {
		return store.Due{}, err
	}
	r.Purges.heard(found.now)
	return found.Due, nil
}

// Purge removes up to limit rows of each kind whose time is over, and log lines up
// to their own bound. It needs no more rights than to delete rows.
func (r *Room) Purge(ctx context.Context, limit int) (int, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return 0, err
	}
	defer r.pg.Leave()
	now, err := r.pg.Now(ctx, r.pg.Upkeep)
	if err != nil {
		return 0, err
	}
	purged := int64(0)
	err = r.pg.Retry(ctx, "purge", pg.Always, func(ctx context.Context, _ bool) error {
		purged = 0
		var reached *time.Time
		var lines, strays int64
		steps := []*pg.Statement{{Text: purgeArchive, Args: []any{r.pg.Namespace, limit, r.Purges.from(now), limit * store.PurgeLines}, Each: func(scan pg.Scan) error {
			return scan(&purged, &reached, &lines)
		}}}
		for _, text := range r.purgeTexts {
			steps = append(steps, &pg.Statement{Text: text, Args: []any{r.pg.Namespace, limit}})
		}
		steps = append(steps, &pg.Statement{Text: settings.PurgeVersions, Args: []any{r.pg.Namespace, limit}})
		counted := steps[1:]
		steps = append(steps, &pg.Statement{Text: forgetWorkers, Args: []any{r.pg.Namespace, limit}})
		var looked linePlace
		from := r.Purges.lines()
		steps = append(steps, &pg.Statement{Text: purgeLogs, Args: []any{r.pg.Namespace, [16]byte(from.job), from.line, limit}, Each: func(scan pg.Scan) error {
			return scan(&looked.job, &looked.line, &strays)
		}})
		if err := r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits, steps...); err != nil {
			return err
		}
		for _, st := range counted {
			purged += st.Hits
		}
		if lines == int64(limit)*store.PurgeLines || strays == int64(limit) {
			purged = max(purged, int64(limit)) // it stopped at the bound of lines: there is more
		}
		r.Purges.looked(looked)
		if reached != nil {
			r.Purges.reached(*reached)
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
